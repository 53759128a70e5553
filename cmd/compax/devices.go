package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) devicesCommand() *cobra.Command {
	cmd := command("devices", "List the account's devices", args(), func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			devices, err := p.Devices(ctx, local.None{})
			if err != nil {
				return err
			}
			return a.showDevices(devices)
		})
	})
	var force bool
	revoke := command("revoke DEVICE", "End a device for good", args("DEVICE"), func(cmd *cobra.Command, args []string) error {
		device, err := identity.ParseDeviceID(args[0])
		if err != nil {
			return hint(usage("%q is no device", args[0]), "compax devices lists them")
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			if !force {
				if err := isListed(ctx, p, device); err != nil {
					return err
				}
			}
			return a.revoke(ctx, p, device)
		})
	})
	revoke.Flags().BoolVar(&force, "force", false, "also a device that the service does not list")
	revoke.Long = `Ends a device for good: it is logged out within a second, leaves every room and
reads nothing after. A device that does not hold the account's key asks for the
recovery phrase, on standard input.`
	cmd.AddCommand(revoke, a.ticketCommand(), a.approveCommand())
	return cmd
}

func (a *app) showDevices(devices []local.Device) error {
	var t table
	for _, d := range devices {
		if a.json {
			if err := a.emit(d); err != nil {
				return err
			}
			continue
		}
		note, seen := "another device", ""
		switch {
		case d.This:
			note = "this device"
		case d.Revoked:
			note = "revoked"
		case d.Idle:
			note = "idle for 90 days: revoke it when it is lost"
		}
		if d.Seen != nil {
			seen = "last here " + a.when(*d.Seen)
		}
		t.add(d.Device.String(), note, seen)
	}
	if err := t.write(a.out, func(column int, cell string) string {
		if column == 0 {
			return cell
		}
		return a.paint(a.outTTY, dim, cell)
	}); err != nil || a.json {
		return err
	}
	if len(devices) == 1 {
		a.say("This is the account's only device. A further one: compax devices ticket")
	}
	return nil
}

// isListed refuses a device that is none of the account's: a revocation is for good, and
// another id is a slip of the hand. A service that was restored may not list one that is.
func isListed(ctx context.Context, p local.Profile, device identity.DeviceID) error {
	devices, err := p.Devices(ctx, local.None{})
	if err != nil || slices.ContainsFunc(devices, func(d local.Device) bool { return d.Device == device }) {
		return err
	}
	return hint(usage("%s is no device of this account", device), "compax devices lists them; --force revokes it all the same")
}

// revoke asks for the phrase only when it is needed.
func (a *app) revoke(ctx context.Context, p local.Profile, device identity.DeviceID) error {
	err := a.withPhrase(func(text string) error {
		_, err := p.Revoke(ctx, local.RevokeRequest{Device: device, Phrase: text})
		return err
	})
	if err != nil {
		return err
	}
	return a.result(map[string]any{"device": device, "revoked": true}, "")
}

func (a *app) verifyCommand() *cobra.Command {
	var confirm bool
	cmd := command("verify WHO [NUMBER]", "Compare safety numbers with somebody", args("WHO", "[NUMBER]"), nil)
	cmd.Long = `Prints the safety number that you share with somebody: 60 digits, the same at
both ends unless somebody is in between. Compare them by voice or face to face,
then say so with --confirm; or give the NUMBER that they read to you, and it is
compared here.`
	cmd.Example = example(`compax verify -p ada @bob`, `compax verify -p ada @bob --confirm`)
	cmd.ValidArgsFunction = a.completeWho
	cmd.Flags().BoolVar(&confirm, "confirm", false, "it was compared and is the same")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := who(args[0])
		if err != nil {
			return err
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			req := local.SafetyRequest{Who: w, Confirm: confirm}
			if len(args) == 2 {
				s, err := p.Safety(ctx, local.SafetyRequest{Who: w})
				if err != nil {
					return err
				}
				if digits(s.Number) != digits(args[1]) {
					return &local.Error{Code: "mismatch", Exit: exitRefused, Detail: "the numbers are not the same",
						Hint: "read it again; if it stays different somebody may be in between: do not trust this chat"}
				}
				req.Confirm = true
			}
			s, err := p.Safety(ctx, req)
			if err != nil {
				return err
			}
			return a.showSafety(s)
		})
	}
	return cmd
}

func (a *app) showSafety(s local.Safety) error {
	if a.json {
		return a.emit(s)
	}
	words := strings.Fields(s.Number)
	var t table
	for len(words) > 0 {
		n := min(4, len(words))
		t.add(words[:n]...)
		words = words[n:]
	}
	err := t.write(a.out, func(_ int, cell string) string { return a.paint(a.outTTY, bold, cell) })
	name := line(s.Name)
	if name == "" {
		name = s.Identity.String()[:8]
	}
	if s.Verified {
		a.say("You have compared this number with %s.", name)
	} else {
		a.say("Compare it with %s, by voice or face to face; then: compax verify … --confirm", name)
	}
	return err
}

// digits is the digits of a text.
func digits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}
