package appends

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/client/native"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/node"
)

// serveDir, when set, makes the test binary the service that is measured.
const serveDir = "COMPAX_BENCH_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if path := os.Getenv("COMPAX_BENCH_PROFILE"); path != "" {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		begin := make(chan os.Signal, 1)
		signal.Notify(begin, syscall.SIGUSR1)
		go func() {
			<-begin
			if err := pprof.StartCPUProfile(file); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
		defer pprof.StopCPUProfile()
	}
	unlimited := map[string]server.Bucket{}
	for name := range server.DefaultBuckets() {
		unlimited[name] = server.Bucket{}
	}
	n, err := node.New(ctx, node.Config{
		Dir: dir, Listen: "127.0.0.1:0", MetricsListen: "off", DrainSeconds: 1,
		Buckets: unlimited, Work: server.WorkLimits{Off: true},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	fmt.Println(n.URL())
	return n.Run(ctx)
}

// service is the process that is measured. url is what it prints when it listens.
type service struct {
	url  string
	pid  int
	stop func()
}

func startService(b *testing.B) *service {
	b.Helper()
	s := startProcess(b, exec.Command(os.Args[0]), serveDir+"="+b.TempDir())
	b.Cleanup(s.stop)
	return s
}

// startProcess starts a service and waits for the line in which it says where it
// listens.
func startProcess(b *testing.B, cmd *exec.Cmd, env ...string) *service {
	b.Helper()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	check(b, err)
	check(b, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check(b, err)
	return &service{url: strings.TrimSpace(line), pid: cmd.Process.Pid, stop: func() {
		check(b, cmd.Process.Signal(syscall.SIGTERM))
		check(b, cmd.Wait())
	}}
}

// profile begins the service's CPU profile, where one is wanted: what made its rooms
// is not in it.
func (s *service) profile(b *testing.B) {
	b.Helper()
	if os.Getenv("COMPAX_BENCH_PROFILE") != "" {
		check(b, syscall.Kill(s.pid, syscall.SIGUSR1))
	}
}

// cpu is what the service has used so far: user and system time of
// /proc/PID/stat, in hundredths of a second.
func (s *service) cpu(b *testing.B) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0 // not Linux
	}
	check(b, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		check(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// person is a device with a session and rooms of its own.
type person struct {
	device ed25519.PrivateKey
	key    *suite.SignatureKey // the same, as MLS has it
	cred   identity.Credential
	token  string
	rooms  []*target
}

// people enrols n devices and gives each its share of the rooms.
func (s *service) people(b *testing.B, n, rooms int) []*person {
	b.Helper()
	ctx := context.Background()
	transport := native.New()
	b.Cleanup(transport.Close)
	info, err := client.New(client.Config{Base: s.url, Transport: transport}).Info(ctx)
	check(b, err)
	out := make([]*person, n)
	var wg sync.WaitGroup
	for i := range out {
		p := newPerson(b, info.Home)
		out[i] = p
		share := rooms / n
		if i < rooms%n {
			share++
		}
		c := client.New(client.Config{Base: s.url, Transport: tap{transport, p}, Account: p})
		wg.Go(func() {
			if err := c.Enrol(ctx, p.cred.Bytes()); err != nil {
				b.Error(err)
				return
			}
			for range share {
				room, err := p.makeRoom(ctx, c, info)
				if err != nil {
					b.Error(err)
					return
				}
				p.rooms = append(p.rooms, p.target(room))
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return out
}

func newPerson(b *testing.B, home identity.Home) *person {
	b.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(b, err)
	_, device, err := ed25519.GenerateKey(rand.Reader)
	check(b, err)
	cred, err := identity.Attest(identity.Attestation{
		Home: home, Identity: identity.PublicKey(key.Public().(ed25519.PublicKey)),
		DevicePubkey: identity.DevicePublicKey(device.Public().(ed25519.PublicKey)), Version: 1, IssuedAt: 1,
	}, key, device)
	check(b, err)
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	check(b, err)
	signer, err := cs.NewSignatureKey(device.Seed())
	check(b, err)
	return &person{device: device, key: signer, cred: cred}
}

// makeRoom makes a room of this person alone.
func (p *person) makeRoom(ctx context.Context, c *client.Client, info delivery.Info) (delivery.RoomID, error) {
	room, err := delivery.NewRoomID(info.Home, rand.Reader)
	if err != nil {
		return room, err
	}
	extensions, err := policy.Creation{
		Room: room, Kind: delivery.RoomGroup, Domain: info.Domain, SenderKey: info.SenderKey,
		Creator: p.cred.Attestation().Identity,
	}.Extensions()
	if err != nil {
		return room, err
	}
	now := time.Now()
	config := mls.Config{Signers: []*suite.SignatureKey{p.key}, Credentials: policy.Credentials{}}
	step, err := config.Create(mls.CreateParams{
		Random: rand.Reader, Now: now, CipherSuite: suite.X25519AES128GCMSHA256Ed25519, GroupID: room[:], Extensions: extensions,
		Leaf: mls.CreatorLeaf{
			Signer: p.key, Credential: wire.BasicCredential(p.cred.Bytes()),
			Capabilities: policy.Capabilities(), Extensions: policy.LeafExtensions(),
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		},
	})
	if err != nil {
		return room, err
	}
	groupInfo, err := step.Next.GroupInfo(false, nil)
	if err != nil {
		return room, err
	}
	return room, c.CreateRoom(ctx, delivery.CreateRoomRequest{GroupInfo: groupInfo, Tree: step.Next.RatchetTree()})
}

// person implements client.Account.

func (p *person) Device() identity.DeviceID { return p.cred.DeviceID() }

func (p *person) SignLogin(home identity.Home, challenge []byte) ([]byte, error) {
	sig, err := identity.SignLogin(home, challenge, p.device)
	return sig[:], err
}

func (p *person) CopyCounter(context.Context) (have, want [16]byte, err error) {
	_, err = io.ReadFull(rand.Reader, want[:])
	return have, want, err
}

func (p *person) LoggedIn(context.Context, [16]byte, bool) error { return nil }

func (p *person) CutOff(context.Context) error { return nil }

// tap notes the token that the client's requests carry, for the load's own.
type tap struct {
	client.Transport
	p *person
}

func (t tap) Do(ctx context.Context, r client.Request) (client.Response, error) {
	if token, ok := strings.CutPrefix(r.Header["Authorization"], "Bearer "); ok {
		t.p.token = token
	}
	return t.Transport.Do(ctx, r)
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
