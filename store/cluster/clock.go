package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store/postgres"
)

// maxSkew is the largest difference between the clocks of a process and of the database. Leases
// follow the database alone, but users see times of both, and files expire by those of processes.
const maxSkew = 10 * time.Second

func checkClock(ctx context.Context, db *postgres.DB) error {
	ahead, err := db.ClockOffset(ctx)
	if err != nil {
		return err
	}
	if ahead.Abs() > maxSkew {
		return fmt.Errorf("the clock of the database is %v ahead of the one here, and may differ "+
			"by %v; synchronise both, for instance with chrony", ahead.Round(time.Second),
			maxSkew)
	}
	return nil
}
