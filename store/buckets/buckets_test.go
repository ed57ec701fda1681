package buckets_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
)

func TestFaultsOfEntries(t *testing.T) {
	err := buckets.Validate([]buckets.Entry{
		{Name: "a", Bucket: "data", Prefix: "in/", Backend: "s3", Tenants: []string{"t"}},
		{Name: "a", Bucket: "data", Prefix: "in/", Backend: "s3", Access: "write"},
		{Name: "B", Bucket: "x", Prefix: "in", Backend: "local", Tenants: []string{""},
			Access: "all", CredentialsSecretRef: "../x", EndpointURL: "https://u:p@host/"},
		{Name: "c", Bucket: "data", Prefix: "../", Backend: "minio"},
		{Name: "d", Bucket: "data", Prefix: "in/", Backend: "gcs", Access: "read_write"},
		{Name: "e", Bucket: "data", Prefix: "in/", Backend: "tos", Tenants: []string{"u"},
			Access: "write"},
	})
	var got []string
	for fault := range strings.SplitSeq(err.Error(), "\n") {
		at, _, _ := strings.Cut(fault, ":")
		got = append(got, at)
	}
	want := []string{"[1].name", "[2].name", "[2].bucket", "[2].prefix", "[2].backend",
		"[2].endpoint_url", "[2].credentials_secret_ref", "[2].tenants[0]", "[2].access",
		"[3].prefix", "[3].endpoint_url",
		"[4].bucket", "[4].bucket", // the same as a and as the second entry
		"[5].bucket", "[5].bucket"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s\n%v", diff, err)
	}
	if strings.Contains(err.Error(), "u:p") {
		t.Errorf("a password is shown: %v", err)
	}
}

// opened notes what is opened.
type opened struct {
	buckets.Objects
	at    store.Storage
	below string
}

func TestFind(t *testing.T) {
	entry := func(name, bucket, prefix, access string, tenants ...string) buckets.Entry {
		return buckets.Entry{Name: name, Bucket: bucket, Prefix: prefix, Backend: "s3",
			Access: access, Tenants: tenants, CredentialsSecretRef: name}
	}
	b := buckets.New(func(s store.Storage, below string) buckets.Objects {
		return opened{at: s, below: below}
	}, []buckets.Entry{
		entry("all", "shared", "", "read"),
		entry("in", "data", "in/", "", "a", "b"),
		entry("deep", "data", "in/deep/", "read", "a"),
		entry("out", "data", "out/", "write", "a"),
		entry("theirs", "others", "", "read_write", "c"),
	})
	for _, c := range []struct{ tenant, url, use, entry, words string }{
		{"a", "s3://shared/x", "read", "all", ""},
		{"a", "s3://shared/x", "write", "", "may not write there; it may read; you may let the " +
			"server write below s3://data/out/"},
		{"a", "s3://data/in/x", "read", "in", ""},
		{"a", "s3://data/in/deep/x", "read", "deep", ""},
		{"b", "s3://data/in/deep/x", "read", "in", ""},
		{"a", "s3://data/in/x", "write", "", "may not write there"},
		{"a", "s3://data/out/x", "write", "out", ""},
		{"a", "s3://data/out/x", "read", "", "may not read there"},
		{"b", "s3://data/out/x", "write", "", "may not write there"},
		{"b", "s3://data/out/x", "read", "", "outside of what is open to you of the bucket " +
			`"data"; you may let the server read below s3://data/in/`},
		{"a", "s3://data/inner", "read", "", "outside of what is open"},
		{"c", "s3://data/in/x", "read", "", `the bucket "data" is not open to you; you may let ` +
			"the server read below s3://others/, s3://shared/"},
		{"a", "s3://others/x", "read", "", `the bucket "others" is not open to you`},
		{"a", "s3://none/x", "read", "", `the bucket "none" is not open to you`},
	} {
		u, err := buckets.ParseURL(c.url)
		if err != nil {
			t.Fatal(err)
		}
		place, err := b.Find(c.tenant, u, buckets.Use(c.use))
		if c.words != "" {
			if refusal := (*buckets.Refusal)(nil); !errors.As(err, &refusal) ||
				!strings.Contains(err.Error(), c.words) {
				t.Errorf("%v: got %v", c, err)
			}
			for _, secret := range []string{"theirs", "s3://others"} {
				if c.tenant != "c" && strings.Contains(err.Error(), secret) {
					t.Errorf("%v: it says %s of others: %v", c, secret, err)
				}
			}
			continue
		}
		if err != nil || place.Entry != c.entry || place.URL != u ||
			place.Objects.(opened).at.Credentials != c.entry ||
			!strings.HasPrefix(u.Name, place.Objects.(opened).below) {
			t.Errorf("%v: got %+v, %v", c, place, err)
		}
	}
	b.Configure(nil)
	if _, err := b.Find("a", buckets.URL{Bucket: "shared"}, buckets.Read); err == nil ||
		!strings.Contains(err.Error(), "ask the server's operator") {
		t.Errorf("without entries: %v", err)
	}
}

// Whatever a user writes, a URL that is accepted is written back as it was, and its name has no
// part that leads elsewhere.
func FuzzParseURL(f *testing.F) {
	for _, text := range []string{"s3://bucket/a/b.jsonl", "s3://bucket/", "s3://bucket/a/",
		"s3://bucket/../x", "s3://bucket//", "s3://bucket/%2e%2e/?a#b", "s3:///x", "http://h/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := buckets.ParseURL(text)
		if err != nil {
			return
		}
		if u.String() != text {
			t.Errorf("%q is read as %q", text, u)
		}
		parts := strings.Split(strings.TrimSuffix(u.Name, "/"), "/")
		if u.Name != "" && slices.ContainsFunc(parts, func(part string) bool {
			return part == "" || part == "." || part == ".."
		}) {
			t.Errorf("accepted %q", text)
		}
		if u.Several() != strings.HasSuffix(text, "/") {
			t.Errorf("%q names several: %t", text, u.Several())
		}
	})
}
