package api

func (s *Server) batchRoutes() {}
