package registry

import "strings"

// servedName is the argument of engines for the names under which they serve the model.
const (
	servedName = "served_model_name"
	servedFlag = "served-model-name"
)

// Models returns the names of the model that lines may have: those under which the engine serves
// it, else where its weights are.
func (s TemplateSpec) Models() (names []string) {
	given, found := s.EngineArgs.Extra[servedName]
	if !found {
		given = s.EngineArgs.Extra[servedFlag]
	}
	switch value := given.(type) {
	case string:
		names = strings.Fields(value)
	case []any:
		for _, one := range value {
			if name, isText := one.(string); isText {
				names = append(names, name)
			}
		}
	}
	taking := false
	for _, arg := range s.Engine.ServeArgs {
		value, found := strings.CutPrefix(arg, "--"+servedFlag+"=")
		switch {
		case found:
			names = strings.Fields(value) // the last one counts, as with engines
		case arg == "--"+servedFlag:
			names, taking = nil, true
			continue
		case taking && !strings.HasPrefix(arg, "-"):
			names = append(names, arg)
			continue
		}
		taking = false
	}
	if len(names) == 0 {
		return []string{s.ModelSource.URI}
	}
	return names
}
