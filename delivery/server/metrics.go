package server

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/askucher/compax-core/delivery"
)

// metrics are what an instance exports under chat_*. No label names a person,
// a device, a room or a token: labels are routes, codes, kinds, rules and
// reasons, all from fixed lists.
type metrics struct {
	requests    *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	appends     map[delivery.EntryKind]prometheus.Counter
	refused     *prometheus.CounterVec
	conflicts   prometheus.Counter
	read        prometheus.Counter
	sockets     prometheus.Gauge
	sent        prometheus.Counter
	dropped     *prometheus.CounterVec
	hintsLost   prometheus.Counter
	missed      prometheus.Counter
	enrolled    prometheus.Counter
	logins      prometheus.Counter
	revoked     prometheus.Counter
	removals    *prometheus.CounterVec
	rooms       prometheus.Counter
	published   prometheus.Counter
	claimed     *prometheus.CounterVec
	mail        *prometheus.CounterVec
	reports     *prometheus.CounterVec
	resyncs     prometheus.Counter
	succeeded   prometheus.Counter
	healed      prometheus.Counter
	blobIn      prometheus.Counter
	blobOut     prometheus.Counter
	rules       *prometheus.CounterVec
	work        *prometheus.CounterVec
	throttled   *prometheus.CounterVec
	bucketsOpen prometheus.Counter
	followers   *prometheus.CounterVec
	pressure    prometheus.Gauge
	shed        *prometheus.CounterVec
	swept       *prometheus.CounterVec
	sweptAt     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{appends: map[delivery.EntryKind]prometheus.Counter{}}
	var all []prometheus.Collector
	add := func(c prometheus.Collector) { all = append(all, c) }
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "chat_" + name, Help: help})
		add(c)
		return c
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "chat_" + name, Help: help}, labels)
		add(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "chat_" + name, Help: help})
		add(g)
		return g
	}
	m.requests = vector("http_requests_total", "Requests by route and status.", "route", "status")
	m.durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chat_http_request_duration_seconds", Help: "How long requests took, by route.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"route"})
	add(m.durations)
	appends := vector("log_appends_total", "Entries that got a seq, by kind.", "kind")
	for _, k := range []delivery.EntryKind{delivery.KindApplication, delivery.KindProposal, delivery.KindCommit} {
		m.appends[k] = appends.WithLabelValues(k.String())
	}
	m.refused = vector("log_refusals_total", "Appends that were refused, by code.", "code")
	m.conflicts = counter("epoch_conflicts_total", "Appends of another epoch than the room's.")
	m.read = counter("log_entries_read_total", "Entries handed out from logs.")
	m.sockets = gauge("ws_sockets_open", "Sockets that are attached.")
	m.sent = counter("ws_events_sent_total", "Frames written to sockets.")
	m.dropped = vector("ws_events_dropped_total", "Frames dropped from socket queues, by reason.", "reason")
	m.hintsLost = counter("fanout_errors_total", "Rings that the bus did not take.")
	m.missed = counter("fanout_missed_total", "Rooms that a socket had to be rung for by looking, because no hint came.")
	m.enrolled = counter("devices_enrolled_total", "Enrolments, repeated ones included.")
	m.logins = counter("sessions_opened_total", "Logins.")
	m.revoked = counter("devices_revoked_total", "Devices revoked by their owners.")
	m.removals = vector("removals_proposed_total", "Removals of revoked devices that the home proposed, by result.", "result")
	m.rooms = counter("rooms_created_total", "Rooms made.")
	m.published = counter("key_packages_published_total", "Key packages taken in.")
	m.claimed = vector("key_packages_claimed_total", "Key packages handed out, by kind; none: a device had no package.", "kind")
	m.mail = vector("mailbox_items_total", "Mailbox items put, by kind.", "kind")
	m.reports = vector("commit_reports_total", "Commits that a member could not process, by reason.", "reason")
	m.resyncs = counter("resyncs_total", "External commits by devices that were in the room.")
	m.succeeded = counter("rooms_succeeded_total", "Rooms closed for a successor.")
	m.healed = counter("rooms_healed_entries_total", "Entries taken back from members after a restore.")
	m.blobIn = counter("blob_bytes_received_total", "Bytes of blobs taken in.")
	m.blobOut = counter("blob_bytes_sent_total", "Bytes of blobs handed out.")
	m.rules = vector("rule_disagreements_total", "Requests that broke a rule of policy, by rule and its mode.", "rule", "mode")
	m.work = vector("pow_total", "Proof of work, demanded and solved.", "result")
	m.throttled = vector("throttled_total", "Requests refused by a budget, by bucket.", "bucket")
	m.bucketsOpen = counter("limiter_fail_open_total", "Budgets that could not be read and allowed the request.")
	m.followers = vector("follower_cache_total", "Looks into the cache of rooms' public state.", "result")
	m.pressure = gauge("pressure_level", "How hard pressed this instance is: 0 calm, 1 busy, 2 congested, 3 critical.")
	m.shed = vector("uploads_shed_total", "Uploads refused because of congestion, by level.", "level")
	m.swept = vector("housekeeping_rows_total", "Rows that housekeeping dropped, by kind.", "kind")
	m.sweptAt = gauge("housekeeping_last_finish_seconds", "When housekeeping last finished, Unix time.")
	if reg == nil {
		return m, nil
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// routeMetrics are one route's, resolved once.
type routeMetrics struct {
	m        *metrics
	route    string
	ok       prometheus.Counter
	duration prometheus.Observer
}

func (m *metrics) route(pattern string) *routeMetrics {
	return &routeMetrics{m, pattern, m.requests.WithLabelValues(pattern, "200"), m.durations.WithLabelValues(pattern)}
}

func (r *routeMetrics) done(status int, took time.Duration) {
	r.duration.Observe(took.Seconds())
	if status == 200 {
		r.ok.Inc()
		return
	}
	r.m.requests.WithLabelValues(r.route, strconv.Itoa(status)).Inc()
}

// refusal counts why an append was refused.
func (m *metrics) refusal(err error) {
	code := delivery.CodeRetry
	var e *delivery.Error
	if errors.As(err, &e) {
		code = e.Code
	}
	if code == delivery.CodeStaleEpoch {
		m.conflicts.Inc()
	}
	m.refused.WithLabelValues(string(code)).Inc()
}
