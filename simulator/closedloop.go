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

// user is one user of a closed loop, who sends a request, waits for the answer, thinks, and sends
// the next. The requests and the times to think are drawn in an order of their own, so a slower
// service gets the same requests, later. A nil user belongs to a request of an open stream.
type user struct {
	sim    *simulation
	class  int
	config scenario.Users
	rng    *rand.Rand
	stream workload.Stream
	bursts *workload.Bursts // in which all users think faster; nil: there are none

	content workload.Request
	asked   time.Time
	tries   int      // of the present request
	current *request // request in flight; nil: none
}

// startUsers starts the closed loops.
func (sim *simulation) startUsers() ([]*user, error) {
	var all []*user
	bursts, err := sim.setup.bursts()
	if err != nil {
		return nil, err
	}
	for number, c := range sim.setup.Scenario.Interactive.All() {
		if sim.alone != nil && !sim.alone[number] {
			continue
		}
		for i := range c.Users.Count {
			name := fmt.Sprintf("interactive %s user %d", c.Name, i)
			requests, err := sim.setup.generate(c, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			someone := &user{sim: sim, class: number, config: c.Users, stream: requests,
				rng: sim.setup.seed().Rand(name + "/thinking")}
			if number == 0 { // bursts are those of the first class
				someone.bursts = bursts
			}
			someone.think(epoch)
			all = append(all, someone)
		}
	}
	return all, nil
}

// generate returns the requests of a class from its own generator.
func (s Setup) generate(c scenario.Class, name string) (workload.Stream, error) {
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
		stream = workload.RedrawLengths(stream, c.Input.Workload(), c.Output.Workload(),
			s.seed().Rand(name+"/lengths"))
	}
	return stream, nil
}

// think schedules the next request, some time after an instant.
func (u *user) think(from time.Time) {
	pause := time.Duration(portable.Exponential(u.rng) * float64(u.config.Think))
	at := from.Add(pause)
	if u.bursts != nil {
		at = epoch.Add(u.bursts.After(from.Sub(epoch), pause))
	}
	u.sim.queue.add(at, func() {
		next, ok := u.stream.Next()
		if !ok {
			return
		}
		u.content, u.asked, u.tries = next.Request, u.sim.now, 0
		u.send()
	})
}

// send sends a try of the request.
func (u *user) send() {
	sim := u.sim
	req := &request{arrived: u.asked, class: u.class, input: u.content.Input,
		output:  u.content.Output,
		content: u.content, user: u}
	u.tries++
	u.current = req
	if u.tries > 1 {
		sim.interactive.retried(req)
	}
	sim.send(req)
	if u.config.Timeout > 0 && u.current == req {
		sim.queue.add(sim.now.Add(u.config.Timeout), func() {
			if u.current == req && req.first.IsZero() {
				u.timeOut()
			}
		})
	}
}

// timeOut stops waiting for the first token.
func (u *user) timeOut() {
	sim, req := u.sim, u.current
	u.current = nil
	sim.interactive.timedOut(req, sim.now)
	sim.abandon(req)
	if u.tries <= u.config.Retries {
		sim.queue.add(sim.now.Add(u.config.Backoff), u.send)
		return
	}
	sim.interactive.gaveUp(req, sim.now)
	u.think(sim.now)
}

// answered continues after the last token.
func (u *user) answered(c engine.Completion) {
	if u != nil {
		u.current = nil
		u.think(c.Finished.Add(engine.ServerDelay(c.Output)))
	}
}

// failed continues after a request that failed.
func (u *user) failed() {
	if u != nil {
		u.current = nil
		u.think(u.sim.now)
	}
}
