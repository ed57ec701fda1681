package simulator

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// person is one user of a closed loop: asks, waits for the answer, thinks, asks
// again. What a person asks and how long they think is drawn in their own order,
// so a slower service gets the same requests, only later. A nil person is a user
// who asks once.
type person struct {
	plant    *plant
	class    int
	habits   scenario.Users
	random   *rand.Rand
	requests workload.Stream

	request workload.Request
	asked   time.Time
	tries   int     // so far
	flight  *flight // under way; nil: none
}

// seatUsers sets the closed loops going.
func (p *plant) seatUsers() ([]*person, error) {
	var all []*person
	for number, c := range p.setup.Scenario.Interactive.All() {
		for i := range c.Users.Count {
			name := fmt.Sprintf("interactive %s user %d", c.Name, i)
			requests, err := p.setup.generated(c, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			someone := &person{plant: p, class: number, habits: c.Users, requests: requests,
				random: p.setup.seed().Cause(name + "/thinking")}
			someone.think(epoch)
			all = append(all, someone)
		}
	}
	return all, nil
}

// generated is the requests of a class by its own generator.
func (s Setup) generated(c scenario.Class, name string) (workload.Stream, error) {
	population, err := workload.LookupPopulation(c.Generator)
	if err != nil {
		return nil, err
	}
	rate := c.Rate
	if rate == 0 {
		rate = population.Rate
	}
	g, err := workload.NewGenerator(workload.GeneratorConfig{Population: population, Rate: rate,
		Seed: s.seed(), Name: name})
	if err != nil {
		return nil, err
	}
	stream := g.Arrivals()
	if c.Input.Median > 0 || c.Output.Median > 0 {
		stream = workload.Resize(stream, c.Input.Workload(), c.Output.Workload(),
			s.seed().Cause(name+"/lengths"))
	}
	return stream, nil
}

// think puts down the next request, some time after an instant.
func (u *person) think(from time.Time) {
	pause := time.Duration(portable.Exponential(u.random) * float64(u.habits.Think))
	u.plant.agenda.put(from.Add(pause), func() {
		next, ok := u.requests.Next()
		if !ok {
			return
		}
		u.request, u.asked, u.tries = next.Request, u.plant.now, 0
		u.try()
	})
}

func (u *person) try() {
	p := u.plant
	f := &flight{arrived: u.asked, class: u.class, input: u.request.Input, output: u.request.Output,
		request: u.request, person: u}
	u.tries++
	u.flight = f
	if u.tries > 1 {
		p.users.retried(f)
	}
	p.come(f)
	if u.habits.Timeout > 0 && u.flight == f {
		p.agenda.put(p.now.Add(u.habits.Timeout), func() {
			if u.flight == f && f.first.IsZero() {
				u.hangUp()
			}
		})
	}
}

// hangUp gives up waiting for the first token.
func (u *person) hangUp() {
	p, f := u.plant, u.flight
	u.flight = nil
	p.users.hungUp(f, p.now)
	f.replica.abort(f.id)
	if u.tries <= u.habits.Retries {
		p.agenda.put(p.now.Add(u.habits.Backoff), u.try)
		return
	}
	p.users.gaveUp(f, p.now)
	u.think(p.now)
}

// answered goes on when the last token is there.
func (u *person) answered(c engine.Completion) {
	if u != nil {
		u.flight = nil
		u.think(c.Finished.Add(engine.ServerDelay(c.Output)))
	}
}

// failed goes on after a request that has come to nothing.
func (u *person) failed() {
	if u != nil {
		u.flight = nil
		u.think(u.plant.now)
	}
}
