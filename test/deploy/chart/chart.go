package chart

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// Release is an installation of the chart.
type Release struct{ Name, Namespace string }

// File is what a template has become.
type File struct {
	Name string // that of the template without its directory
	Text string
}

// Render renders the chart of a directory with values in YAML, as helm template does: the function
// lookup finds nothing. Files are sorted by name; those
// without content are left out.
func (r Release) Render(dir, values string) ([]File, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", dir, err)
	}
	parsed, err := common.ReadValues([]byte(values))
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	all, err := util.ToRenderValues(c, parsed, common.ReleaseOptions{Name: r.Name,
		Namespace: r.Namespace, Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var files []File
	for name, text := range rendered {
		if strings.TrimSpace(text) != "" {
			files = append(files, File{path.Base(name), text})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}
