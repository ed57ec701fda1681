package api

func (s *Server) fileRoutes() {}
