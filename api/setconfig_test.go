package api

import "testing"

func TestSetConfigAppliesToTheNextRequest(t *testing.T) {
	s := newService(t, quota(1000))
	s.upload(padded(600))
	s.sendFile(padded(600)).refused(413, "", "storage_quota_exceeded")
	cfg := *s.server.config()
	cfg.TenantQuotaBytes = 2000
	s.server.SetConfig(cfg)
	s.upload(padded(600))
	cfg.TenantQuotaBytes = 100
	s.server.SetConfig(cfg)
	s.sendFile(padded(200)).refused(413, "", "storage_quota_exceeded")
	s.used(DefaultTenant, 1200)
}
