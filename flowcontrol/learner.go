package flowcontrol

import "time"

// Learner is a Controller that can hand over what it has learned to the controller that takes its
// place, after a restart of the daemon or with other settings. flowcontroltest.TestController
// checks the contract for controllers that implement it.
type Learner interface {
	// Learned returns what is worth keeping, in a form that only the policy reads, of at most
	// MaxLearned bytes; nil: nothing yet, and what was kept before is still the best. It changes
	// no later decision.
	Learned(now time.Time) []byte
	// Learn takes over what a controller of the same policy has learned, age ago, of a pool with
	// the same models and engines. It is called before the first line starts; runners may have
	// joined. The older it is, the less of it counts. In the first half minute the controller
	// grants no more because of it than the one before has carried, and nothing before it has seen
	// the pool, if the policy looks at it. The error says why nothing is taken over, as of an
	// unknown version or a damaged state; the controller is then as if Learn had not been called.
	Learn(now time.Time, learned []byte, age time.Duration) error
}

// MaxLearned limits what a Learner returns, in bytes.
const MaxLearned = 256 << 10

// Spender is a Controller with a limit of money per day.
type Spender interface {
	// Spent returns what the lines of this day (UTC) have cost, those in flight as estimated, and
	// the most that they may cost. It changes no later decision.
	Spent(now time.Time) (spent, perDay float64)
}
