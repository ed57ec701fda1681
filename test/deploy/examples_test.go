package deploy_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const examplesDir = "../../examples"

// composition is a file of Docker Compose, as far as the examples use it.
type composition struct {
	Include  []string           `json:"include"`
	Services map[string]service `json:"services"`
	Volumes  map[string]any     `json:"volumes"`
}

type service struct {
	Image           string            `json:"image"`
	PullPolicy      string            `json:"pull_policy"`
	Command         []string          `json:"command"`
	Environment     map[string]string `json:"environment"`
	Ports           []string          `json:"ports"`
	Volumes         []string          `json:"volumes"`
	IPC             string            `json:"ipc"`
	Deploy          any               `json:"deploy"`
	ReadOnly        bool              `json:"read_only"`
	StopGracePeriod string            `json:"stop_grace_period"`
	Restart         string            `json:"restart"`
}

// listens has the ports at which the services of the examples listen.
var listens = map[string][]string{"vllm": {"8000"}, "tidefill": {"8080", "8081"},
	"open-webui": {"8080"}, "litellm": {"4000"}}

var (
	serviceURL = regexp.MustCompile(`http://([a-z-]+):(\d+)`)
	published  = regexp.MustCompile(`^127\.0\.0\.1:(\d+):(\d+)$`)
)

// Services of the compositions reach each other, publish ports on this machine only, and mount what
// exists. The program accepts its arguments.
func TestExampleCompositions(t *testing.T) {
	for _, name := range []string{"vllm", "open-webui", "litellm"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(examplesDir, name, "compose.yaml")
			c := readComposition(t, path)
			text := read(t, path)
			for _, included := range c.Include {
				included = filepath.Join(filepath.Dir(path), included)
				other := readComposition(t, included)
				maps.Copy(c.Services, other.Services)
				maps.Copy(c.Volumes, other.Volumes)
				text += read(t, included)
			}
			if name == "litellm" {
				text += checkLiteLLM(t)
			}
			checkServices(t, filepath.Dir(path), c)
			for _, match := range serviceURL.FindAllStringSubmatch(text, -1) {
				name, port := match[1], match[2]
				if c.Services[name].Image == "" || !slices.Contains(listens[name], port) {
					t.Errorf("%s is no service of the composition", match[0])
				}
			}
			if fault := tidefillFault(t, c.Services["tidefill"].Command); fault != "" {
				t.Errorf("tidefill refuses its arguments: %s", fault)
			}
		})
	}
}

// checkServices checks the ports and volumes of the services.
func checkServices(t *testing.T, dir string, c composition) {
	t.Helper()
	taken := map[string]string{}
	for name, s := range c.Services {
		if s.Image == "" || listens[name] == nil {
			t.Errorf("%s has no image, or the test does not know its port", name)
		}
		for _, port := range s.Ports {
			match := published.FindStringSubmatch(port)
			switch {
			case match == nil || !slices.Contains(listens[name], match[2]):
				t.Errorf("%s publishes %s; it listens at %v", name, port, listens[name])
			case taken[match[1]] != "":
				t.Errorf("%s and %s publish %s", name, taken[match[1]], match[1])
			default:
				taken[match[1]] = name
			}
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, known := c.Volumes[from]; !known {
				read(t, filepath.Join(dir, from))
			}
		}
	}
}

func readComposition(t *testing.T, path string) composition {
	t.Helper()
	c := composition{Volumes: map[string]any{}}
	if err := yaml.UnmarshalStrict([]byte(read(t, path)), &c); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

// checkLiteLLM checks that files and batches of one model go to Tidefill, and returns the file.
func checkLiteLLM(t *testing.T) string {
	t.Helper()
	text := read(t, filepath.Join(examplesDir, "litellm", "config.yaml"))
	var config struct {
		Models []struct {
			Name   string            `json:"model_name"`
			Params map[string]string `json:"litellm_params"`
			Info   map[string]string `json:"model_info"`
		} `json:"model_list"`
		General map[string]string `json:"general_settings"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	for _, m := range config.Models {
		batch := strings.HasPrefix(m.Params["api_base"], "http://tidefill:")
		if batch != (m.Info["mode"] == "batch") {
			t.Errorf("%s goes to %s, with mode %q", m.Name, m.Params["api_base"], m.Info["mode"])
		}
	}
	if !strings.Contains(text, "http://tidefill:8080/v1\n") {
		t.Error("no model goes to Tidefill")
	}
	return text
}
