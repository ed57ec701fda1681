package batchfile

import "testing"

func TestAppendTurns(t *testing.T) {
	turns := AppendTurn(AppendTurn(nil, "assistant", "a\"b"), "user", "why")
	const (
		chat      = "/v1/chat/completions"
		responses = "/v1/responses"
		added     = `{"role":"assistant","content":"a\"b"},{"role":"user","content":"why"}`
	)
	for _, test := range []struct{ url, body, want string }{
		{chat, `{ "messages" : [ {"role":"user"} ] , "n":1}`,
			`{ "messages" : [ {"role":"user"} ,` + added + `] , "n":1}`},
		{chat, `{"x":[1],"messages":[{"content":[1]}]}`,
			`{"x":[1],"messages":[{"content":[1]},` + added + `]}`},
		{responses, `{"input":[{}]}`, `{"input":[{},` + added + `]}`},
		{responses, `{"input":"q\n","x":1}`,
			`{"input":[{"role":"user","content":"q\n"},` + added + `],"x":1}`},
		{chat, `{"messages":"q"}`, ""},
		{chat, `{"messages":[ ]}`, ""},
		{chat, `{"messages":[1],"messages":[2]}`, ""},
		{chat, `{"messages":[1],"continue_final_message":true}`, ""},
		{chat, `{"input":[1]}`, ""},
		{chat, `{"messages":[1]`, ""},
		{"/v1/completions", `{"prompt":["q"]}`, ""},
	} {
		got, ok := AppendTurns([]byte(test.body), test.url, turns)
		if string(got) != test.want || ok != (test.want != "") {
			t.Errorf("%s of %s:\ngot  %s, %v\nwant %s", test.body, test.url, got, ok, test.want)
		}
	}
}
