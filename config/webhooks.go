package config

import (
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/api/webhook"
)

// validateWebhooks reports what is wrong with the endpoints of webhooks.
func (c Config) validateWebhooks() error {
	var faults []error
	for _, fault := range Faults(webhook.Validate(c.Webhooks)) {
		faults = append(faults, fmt.Errorf("webhooks%w", fault))
	}
	return errors.Join(faults...)
}
