package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

// versions are those of this program and of the daemon that it would call.
type versions struct {
	Client struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	} `json:"client"`
	Server struct {
		URL     string `json:"url"`
		Version string `json:"version"` // empty: see Error
		Error   string `json:"error,omitempty"`
	} `json:"server"`
}

func versionCommand() *cobra.Command {
	r := new(remote)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the daemon",
		Long: "Print the version of this program and, if one answers within two seconds, that of " +
			"the daemon.",
		Args: cobra.NoArgs,
	}
	return r.command(cmd, objectFormats, func(ctx context.Context, c *client.Client, r *remote,
		_ []string, out io.Writer) error {
		var v versions
		v.Client.Version, v.Client.Go = version(), runtime.Version()
		v.Client.Platform = runtime.GOOS + "/" + runtime.GOARCH
		v.Server.URL = r.server
		ctx, cancel := context.WithTimeout(ctx, completionTime)
		defer cancel()
		server, err := c.Version(ctx)
		if v.Server.Version = server.Version; err != nil {
			v.Server.Error = withRemedy(err).Error()
		}
		return r.print(out, v, func(w io.Writer) error {
			fmt.Fprintln(w, clientVersion())
			if v.Server.Version == "" {
				printf(w, "server: unknown: %s\n", v.Server.Error)
			} else {
				printf(w, "server %s, %s\n", v.Server.Version, v.Server.URL)
			}
			return nil
		})
	})
}

// clientVersion describes this program in a row.
func clientVersion() string {
	return fmt.Sprintf("tidefill %s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// release is the version of a release, which the linker sets. Empty: the program is none.
var release string

// version is that of the release, the module's version or, for a build from a checkout, the commit.
func version() string {
	if release != "" {
		return release
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := build.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, dirty := "", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if commit == "" {
		return "development build"
	}
	return commit + dirty
}
