package cluster

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

const lease = 30 * time.Second

// machines are processes on one database, whose clock the test sets.
type machines struct {
	t        *testing.T
	database string
	now      time.Time
}

func newMachines(t *testing.T) *machines {
	return &machines{t: t, database: testpostgres.Shared(t).NewDatabase(t), now: time.Now()}
}

// process returns one that claims names.
func (m *machines) process(self store.Process) *names {
	m.t.Helper()
	m.t.Setenv("TIDEFILL_TEST_PASSWORD", testpostgres.Password)
	cfg := postgres.DefaultConfig()
	_, host, _ := strings.Cut(testpostgres.Shared(m.t).URL(m.database), "@")
	cfg.URL, cfg.PasswordEnv = "postgres://"+testpostgres.User+"@"+host, "TIDEFILL_TEST_PASSWORD"
	db, err := postgres.Open(m.t.Context(), cfg, postgres.Options{
		Now: func() time.Time { return m.now }})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { db.Close() })
	db.RegisterAs(self)
	return &names{db: db, self: self, seen: map[string]*store.NameTaken{}}
}

func (m *machines) claim(n *names) error { return n.claim(m.t.Context(), "n1", lease) }

// A second process of a name waits until the first renews its lease, and then is refused.
func TestANameBelongsToOneProcess(t *testing.T) {
	m := newMachines(t)
	first := m.process(store.Process{ID: "1", Host: "h1", PID: 11, Machine: "b1"})
	second := m.process(store.Process{ID: "2", Host: "h2", PID: 22, Machine: "b2"})
	if err := errors.Join(m.claim(first), m.claim(first)); err != nil {
		t.Fatal(err)
	}
	owner, err := first.db.Register(t.Context(), "n1", lease) // the dispatcher does
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, unavailable bool, words ...string) {
		t.Helper()
		err := m.claim(second)
		if err == nil || errors.Is(err, store.ErrUnavailable) != unavailable {
			t.Fatalf("%s: got %v", what, err)
		}
		for _, word := range append(words, "process 11 on host h1", "n1") {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: got %v, want %q", what, err, word)
			}
		}
	}
	check("at first", true, "waiting until")
	check("again", true)
	m.now = m.now.Add(lease / 4)
	if err := first.db.Renew(t.Context(), owner, lease); err != nil {
		t.Fatal(err)
	}
	check("after a renewal", false, "--node")
	if err := first.db.Renew(t.Context(), owner, lease); err != nil {
		t.Errorf("the first was fenced: %v", err)
	}
}

// The name of a process that was killed is free when its lease ends, and at once where its end is
// certain.
func TestANameOutlivesItsProcessByALease(t *testing.T) {
	killed := store.Process{ID: "1", Host: "h", PID: 11, Machine: "b1", Directory: "d1"}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	here := store.Process{ID: "1", Host: "h", PID: ended.Process.Pid, Machine: "b1"}
	living := here
	living.PID = os.Getppid()
	for _, test := range []struct {
		name          string
		holder, claim store.Process
		atOnce        bool
	}{
		{"another machine", killed, store.Process{ID: "2", Machine: "b2", PID: 12}, false},
		{"nothing is known", store.Process{ID: "1"}, store.Process{ID: "2"}, false},
		{"the same directory", killed,
			store.Process{ID: "2", Machine: "b2", PID: 12, Directory: "d1"}, true},
		{"the machine, where it has ended", here,
			store.Process{ID: "2", Machine: "b1", PID: 12}, true},
		{"the machine, where it runs", living,
			store.Process{ID: "2", Machine: "b1", PID: 12}, false},
		{"the same process id, as in containers", living,
			store.Process{ID: "2", Machine: "b1", PID: living.PID}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachines(t)
			first, second := m.process(test.holder), m.process(test.claim)
			if err := m.claim(first); err != nil {
				t.Fatal(err)
			}
			err := m.claim(second)
			if (err == nil) != test.atOnce {
				t.Fatalf("claimed at once: got %v, want %v", err, test.atOnce)
			}
			m.now = m.now.Add(lease)
			if err := m.claim(second); err != nil {
				t.Errorf("after the lease: %v", err)
			}
		})
	}
}

// A process whose name another one has taken learns who, and does not take it back.
func TestWhoTakesANameIsNamed(t *testing.T) {
	m := newMachines(t)
	first := m.process(store.Process{ID: "1", Host: "h1", PID: 11})
	second := m.process(store.Process{ID: "2", Host: "h2", PID: 22})
	owner, err := first.db.Register(t.Context(), "n1", lease)
	if err != nil {
		t.Fatal(err)
	}
	m.now = m.now.Add(lease) // the first was suspended
	if err := m.claim(second); err != nil {
		t.Fatal(err)
	}
	err = first.db.Renew(t.Context(), owner, lease)
	if !errors.Is(err, store.ErrFenced) || !strings.Contains(err.Error(),
		"process 22 on host h2 has taken the name") {
		t.Errorf("renew: got %v, want who has the name", err)
	}
	_, err = first.db.Register(t.Context(), "n1", lease)
	var taken *store.NameTaken
	if !errors.As(err, &taken) || taken.Holder.PID != 22 {
		t.Errorf("register again: got %v, want a refusal", err)
	}
}
