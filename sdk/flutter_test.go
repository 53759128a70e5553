package sdk_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

// TestAConnectionThatFlutters: that it broke and came back is told once, not each
// time, and everything is heard.
func TestAConnectionThatFlutters(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(t.Context(), "Flutter")
	must(t, err)
	ada.invite(room, bob)
	must(t, bob.Close())
	var mu sync.Mutex // guards said
	var said []string
	told := make(chan struct{}, 16)
	config := bob.config()
	config.Warn = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, fmt.Sprintf(format, args...))
		told <- struct{}{}
	}
	bob.Engine, err = sdk.Open(t.Context(), config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan string, 16), make(chan error, 1)
	go func() {
		ended <- bob.Listen(ctx, sdk.Listening{Room: &room}, func(l sdk.Line) error { heard <- l.Text; return nil })
	}()
	for round := range 4 {
		ada.say(room, fmt.Sprint("round ", round))
		if got, want := <-heard, fmt.Sprint("round ", round); got != want {
			t.Fatalf("heard %q, want %q", got, want)
		}
		h.stop()
		if round == 0 {
			<-told
		}
		h.start()
		if round == 0 {
			<-told
		}
	}
	cancel()
	<-ended
	mu.Lock()
	defer mu.Unlock()
	if len(said) != 2 || !strings.HasPrefix(said[0], "no connection, trying again: ") {
		t.Errorf("said %q", said)
	}
}
