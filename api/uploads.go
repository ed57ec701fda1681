package api

func (s *Server) uploadRoutes() {}
