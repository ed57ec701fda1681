package deploy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const dashboardFile = "grafana/tidefill.json"

// clusterRow has the panels that have data with the cluster store alone.
const clusterRow = "Cluster store"

// dashboard holds what the tests need of Grafana's model of a dashboard.
type dashboard struct {
	UID           string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ UID string }
	Targets                  []struct{ Expr, LegendFormat string }
	Panels                   []panel // of a row that is collapsed
}

// loadDashboard returns the dashboard with all rows expanded.
func loadDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	var shown []panel
	for _, p := range d.Panels {
		shown = append(append(shown, p), p.Panels...)
	}
	d.Panels = shown
	return d
}

func TestDashboardIsComplete(t *testing.T) {
	d := loadDashboard(t)
	if d.UID != "tidefill" || d.SchemaVersion < 38 { // 38: Grafana 10
		t.Errorf("uid %q, schema %d", d.UID, d.SchemaVersion)
	}
	var variables, rows []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Type+" "+v.Name)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 ||
			p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %d, %q, lacks a description, a query or the data source", p.ID, p.Title)
		}
	}
	if want := []string{"datasource datasource", "query job", "query pool",
		"query runner"}; !slices.Equal(variables, want) {
		t.Errorf("variables %q, want %q", variables, want)
	}
	if want := []string{"Interactive users", "Allowance and reasons", "Batches", "Harvest",
		"Runners", "Scaling and webhooks", "Store and process",
		clusterRow}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

// What the pages offer to look at is on the dashboard.
func TestDashboardShowsTheShadow(t *testing.T) {
	for _, p := range loadDashboard(t).Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "tidefill_shadow_difference_lines") {
				return
			}
		}
	}
	t.Error("no panel has tidefill_shadow_difference_lines")
}

func TestPanelsDoNotOverlap(t *testing.T) {
	panels := loadDashboard(t).Panels
	for i, a := range panels {
		if a.GridPos.X+a.GridPos.W > 24 {
			t.Errorf("%q is wider than the page", a.Title)
		}
		for _, b := range panels[:i] {
			if a.GridPos.X < b.GridPos.X+b.GridPos.W && b.GridPos.X < a.GridPos.X+a.GridPos.W &&
				a.GridPos.Y < b.GridPos.Y+b.GridPos.H && b.GridPos.Y < a.GridPos.Y+a.GridPos.H {
				t.Errorf("%q and %q overlap", a.Title, b.Title)
			}
		}
	}
}

func TestDashboardUsesMetricsThatExist(t *testing.T) {
	d, k := loadDashboard(t), knownMetrics(t)
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "go_") || strings.Contains(target.Expr, "process_") {
				continue // of the Go client; the live test finds them
			}
			var shown []string
			for _, l := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				shown = append(shown, l[1])
			}
			for _, fault := range k.faults(target.Expr, shown...) {
				t.Errorf("%q: %s", p.Title, fault)
			}
		}
	}
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		parts := values.FindStringSubmatch(v.Definition)
		if parts == nil {
			t.Fatalf("variable %s: unexpected query %q", v.Name, v.Definition)
		}
		for _, fault := range k.faults(parts[1], parts[2]) {
			t.Errorf("variable %s: %s", v.Name, fault)
		}
	}
}
