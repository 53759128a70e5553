package server

import (
	"fmt"

	"github.com/askucher/compax-core/delivery"
)

// Mode says what a rule does when it is broken.
type Mode string

// The modes.
const (
	ModeOff    Mode = "off"    // it is not looked at
	ModeShadow Mode = "shadow" // it is counted, and nothing is refused
	ModeOn     Mode = "on"     // it is counted and the request is refused
)

// Rule is a refusal that is this service's policy, not the protocol's validity:
// members never look at it, so its mode may change at any time.
type Rule string

// The rules.
const (
	// RuleResyncRate: a device rejoins a room at most so often (bucket "resync").
	RuleResyncRate Rule = "resync_rate"
	// RuleClaimMember: packages are claimed for a room of this home by its members.
	RuleClaimMember Rule = "claim_member"
	// RuleListAdmin: a room is listed and unlisted by its admins.
	RuleListAdmin Rule = "list_admin"
	// RuleSucceed: a room is closed for a successor by its admins, or by anybody
	// once half of the others reported the epoch's commit.
	RuleSucceed Rule = "succeed"
	// RuleSuccessor: a successor keeps the roles, bans, base policy and revocations of
	// the room, and the removals that it holds.
	RuleSuccessor Rule = "successor"
)

// rules gives each rule its mode when the configuration says nothing. A new
// rule starts in shadow and is switched on once it has disagreed with nobody
// for a month; those that are on are part of the recovery ladder.
var rules = map[Rule]Mode{
	RuleResyncRate:  ModeOn,
	RuleClaimMember: ModeShadow,
	RuleListAdmin:   ModeOn,
	RuleSucceed:     ModeOn,
	RuleSuccessor:   ModeOn,
}

// Rules lists every rule with its default mode.
func Rules() map[Rule]Mode {
	out := make(map[Rule]Mode, len(rules))
	for r, m := range rules {
		out[r] = m
	}
	return out
}

func checkRules(set map[Rule]Mode) error {
	for r, m := range set {
		if _, known := rules[r]; !known {
			return fmt.Errorf("server: rule %q does not exist", r)
		}
		if m != ModeOff && m != ModeShadow && m != ModeOn {
			return fmt.Errorf("server: rule %q has the mode %q, not off, shadow or on", r, m)
		}
	}
	return nil
}

func (s *Server) mode(r Rule) Mode {
	if m, set := s.Rules[r]; set {
		return m
	}
	return rules[r]
}

// broken is called when a request breaks a rule, and decides.
func (s *Server) broken(r Rule, refusal *delivery.Error) error {
	m := s.mode(r)
	if m == ModeOff {
		return nil
	}
	s.metrics.rules.WithLabelValues(string(r), string(m)).Inc()
	if m == ModeShadow {
		return nil
	}
	return refusal
}
