package postgres_test

import (
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/segments/registrytest"
)

func TestSegments(t *testing.T) {
	s := testpostgres.Shared(t)
	registrytest.Test(t, func(t *testing.T) (here, there segments.Registry,
		advance func(time.Duration)) {
		address := s.URL(s.NewDatabase(t))
		return open(t, address, postgres.Options{}).Segments(),
			open(t, address, postgres.Options{}).Segments(), time.Sleep
	})
}
