package config

import (
	"slices"
	"strings"
	"testing"
)

func TestRoles(t *testing.T) {
	for _, test := range []struct {
		roles []Role
		want  []string // parts of the error; none: it is valid
	}{
		{AllRoles, nil},
		{[]Role{RoleAPI}, nil},
		{[]Role{RoleScale, RoleDispatch}, nil},
		{nil, []string{"roles is empty; list some of api, dispatch, scale"}},
		{[]Role{RoleAPI, RoleAPI}, []string{`roles[1]: "api" is listed twice`}},
		{[]Role{"dispatcher", ""}, []string{`roles[0]: "dispatcher" is no role`,
			"did you mean dispatch?", `roles[1]: "" is no role`}},
	} {
		c := Default()
		c.Roles = test.roles
		err := c.Validate()
		if (err == nil) != (test.want == nil) {
			t.Errorf("%v: got %v", test.roles, err)
		}
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want %q", test.roles, err, want)
			}
		}
	}
	if c := Default(); !slices.Equal(c.Roles, AllRoles) {
		t.Errorf("the default is %v, want all", c.Roles)
	}
}
