package answercheck_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/answercheck"
)

const chat = "/v1/chat/completions"

// saying is a chat completion of one choice.
func saying(text, reason string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"choices":[{"message":{"content":%s},"finish_reason":%q}]}`, literal,
		reason)
}

const person = `{"type":"object","required":["name"],"additionalProperties":false,
	"properties":{"name":{"type":"string","pattern":"^[A-Z]"},"age":{"type":"integer","minimum":0}}}`

func TestAnswers(t *testing.T) {
	stop := answercheck.Rules{FinishReason: []string{"stop", "tool_calls"}}
	yes := answercheck.Rules{Pattern: `^(yes|no)\.?$`}
	schema := answercheck.Rules{Schema: json.RawMessage(person)}
	all := answercheck.Rules{FinishReason: []string{"stop"}, Pattern: "Ann",
		Schema: json.RawMessage(person)}
	for _, test := range []struct {
		name      string
		rules     answercheck.Rules
		url, body string
		want      string // empty: it passes
	}{
		{"reason", stop, chat, saying("x", "stop"), ""},
		{"other reason", stop, chat, saying("x", "length"),
			"finish_reason: got length, want stop or tool_calls"},
		{"no reason", stop, chat, `{"choices":[{"message":{}}]}`,
			"finish_reason: got null, want stop or tool_calls"},
		{"every choice counts", stop, chat,
			`{"choices":[{"finish_reason":"stop"},{"finish_reason":"length"}]}`,
			"finish_reason: got length, want stop or tool_calls"},
		{"no choice", stop, chat, `{"choices":[]}`, "the answer has no choice to check"},
		{"another form", stop, chat, `{"choices":7}`, "the answer has no choice to check"},

		{"pattern", yes, chat, saying("no.", "stop"), ""},
		{"no match", yes, chat, saying("well", "stop"),
			`pattern: the text does not match ^(yes|no)\.?$`},
		{"no text", yes, chat, `{"choices":[{"message":{"content":null}}]}`,
			`pattern: the text does not match ^(yes|no)\.?$`},
		{"parts", yes, chat, `{"choices":[{"message":{"content":[{"type":"text","text":"y"},` +
			`{"type":"text","text":"es"}]}}]}`, ""},
		{"completion", yes, "/v1/completions", `{"choices":[{"text":"yes"}]}`, ""},
		{"wrong completion", yes, "/v1/completions", `{"choices":[{"text":" yes"}]}`,
			`pattern: the text does not match ^(yes|no)\.?$`},
		{"response", answercheck.Rules{Pattern: "^yes$", FinishReason: []string{"stop"}},
			"/v1/responses", `{"status":"completed","output":[{"type":"reasoning","content":` +
				`[{"type":"reasoning_text","text":"no"}]},{"type":"message","content":[{"type":` +
				`"output_text","text":"y"},{"type":"output_text","text":"es"}]}]}`, ""},
		{"cut response", stop, "/v1/responses",
			`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`,
			"finish_reason: got length, want stop or tool_calls"},

		{"conforms", schema, chat, saying(` {"name":"Ann","age":3} `, "stop"), ""},
		{"a fence is no JSON", schema, chat, saying("```json\n{\"name\":\"Ann\"}\n```", "stop"),
			"json_schema: the text is not JSON; the fault is at byte 1"},
		{"more follows", schema, chat, saying(`{"name":"Ann"} ok`, "stop"),
			"json_schema: the text is not JSON; more follows the value"},
		{"empty", schema, chat, saying(" ", "length"),
			"json_schema: the text is not JSON; it is empty"},
		{"cut", schema, chat, saying(`{"name":"An`, "length"),
			"json_schema: the text is not JSON; it ends too early"},
		{"wrong type", schema, chat, saying(`{"name":"Ann","age":"3"}`, "stop"),
			"json_schema: at /age: got string, want integer"},
		{"several faults", schema, chat, saying(`{"age":-1,"x":1}`, "stop"),
			"json_schema: at /age: minimum: got -1, want 0; at the text: additional properties " +
				"'x' not allowed; at the text: missing property 'name'"},
		{"pattern of a schema", schema, chat, saying(`{"name":"ann"}`, "stop"),
			"json_schema: at /name: it does not match the pattern ^[A-Z]"},
		{"endless number", schema, chat, saying(`{"name":"Ann","age":1e999999999}`, "stop"),
			"json_schema: the number 1e999999999 is out of range"},

		{"long number", schema, chat, saying(`{"name":"Ann","age":`+strings.Repeat("7", 1001)+`}`,
			"stop"), "json_schema: the number " + strings.Repeat("7", 64) + "… is out of range"},

		{"all rules", all, chat, saying(`{"name":"Ann"}`, "stop"), ""},
		{"the first rule that fails", all, chat, saying(`{"name":"Bob"}`, "stop"),
			"pattern: the text does not match Ann"},
		{"too large", stop, chat, saying(strings.Repeat("x", answercheck.MaxBody), "stop"),
			"an answer of 1048639 bytes is too large to be checked; the limit is 1048576"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := answercheck.Compile(test.rules)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if fault := c.Answer(test.url, []byte(test.body)); fault != nil {
				got = fault.String()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRulesThatCannotBeCompiled(t *testing.T) {
	for name, test := range map[string]struct {
		rules      answercheck.Rules
		rule, want string
	}{
		"pattern": {answercheck.Rules{Pattern: "("}, "pattern", "missing closing )"},
		"long pattern": {answercheck.Rules{Pattern: strings.Repeat("x", 1025)}, "pattern",
			"1025"},
		"costly pattern": {answercheck.Rules{Pattern: "((x{100}){100}){100}"}, "pattern", "repeat"},
		"no schema":      {schemaRules(`7`), "json_schema", "want"},
		"wrong keyword":  {schemaRules(`{"type":"strin"}`), "json_schema", "at /type: "},
		"wrapped": {schemaRules(`{"name":"n","schema":{"type":"object"}}`), "json_schema",
			`member "schema"`},
		"reference to a server": {schemaRules(`{"$ref":"http://127.0.0.1:1/x"}`), "json_schema",
			"nothing is loaded"},
		"reference to a file": {schemaRules(`{"$ref":"file:///etc/passwd"}`), "json_schema",
			"nothing is loaded"},
		"reference to nothing": {schemaRules(`{"$ref":"#/$defs/x"}`), "json_schema", "$defs/x"},
		"metaschema of a server": {schemaRules(`{"$schema":"http://127.0.0.1:1/x"}`),
			"json_schema", "nothing is loaded"},
		"pattern of a schema": {schemaRules(`{"pattern":"("}`), "json_schema", "("},
		"costly patterns": {schemaRules(`{"allOf":[` + strings.Repeat(`{"pattern":"x{999}"},`, 50) +
			`{}]}`), "json_schema", "repeat"},
		"deep":  {schemaRules(strings.Repeat(`{"not":`, 300)), "json_schema", "deep"},
		"large": {schemaRules(`"` + strings.Repeat("x", 64<<10) + `"`), "json_schema", "65538"},
		"many schemas": {schemaRules(`{"allOf":[` + strings.Repeat(`{},`, 1000) + `{}]}`),
			"json_schema", "1000 objects"},
		"many values": {schemaRules(`{"enum":[` + strings.Repeat(`1,`, 12_000) + `1]}`),
			"json_schema", "12000 values"},
		"endless number": {schemaRules(`{"minimum":1e99999999}`), "json_schema", "out of range"},
	} {
		_, err := answercheck.Compile(test.rules)
		at, is := errors.AsType[*answercheck.RuleError](err)
		if !is || at.Rule != test.rule || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error of %s with %q", name, err, test.rule, test.want)
		}
	}
}

func schemaRules(text string) answercheck.Rules {
	return answercheck.Rules{Schema: json.RawMessage(text)}
}

// A schema that applies to a value in 2^40 ways, and others that are slow, end soon.
func TestCostIsBounded(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	values := make([]string, 20_000)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	list := strings.Join(values[:10_000], ",")
	ways := `{"$defs":{`
	for i := range 40 {
		ways += fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i,
			i+1, i+1)
	}
	ways += `"d40":{"type":"null"}},"$ref":"#/$defs/d0"}`
	for name, test := range map[string]struct {
		rules answercheck.Rules
		text  string
	}{
		"two ways into each member": {schemaRules(`{"allOf":[{"properties":{"a":{"$ref":"#"}}},` +
			`{"properties":{"a":{"$ref":"#"}}}]}`), deep},
		"two ways at each reference": {schemaRules(ways), "1"},
		"enumeration": {schemaRules(`{"items":{"enum":[` + list + `]}}`),
			"[" + strings.Repeat("-1,", 100_000) + "1]"},
		"enumeration at each reference": {schemaRules(fanOut(4, 10, `{"enum":[`+list+`]}`)), "-1"},
		"false at each reference": {schemaRules(fanOut(1, 400,
			`{"allOf":[`+strings.Repeat("false,", 500)+`true]}`)), "1"},
		"long text at each reference": {schemaRules(fanOut(4, 10, `{"maxLength":1}`)),
			`"` + strings.Repeat("x", 800_000) + `"`},
		"equal items at each reference": {schemaRules(fanOut(4, 10, `{"uniqueItems":true}`)),
			"[" + list + "]"},
		"no item": {schemaRules(`{"items":false}`), "[" + strings.Repeat("1,", 400_000) + "1]"},
		"no value": {schemaRules(`{"items":{"type":"null"}}`), "[" + list + "," + list + "," +
			list + "," + list + "]"},
		"pattern": {answercheck.Rules{Pattern: "(x?){900}(x?){900}y"},
			strings.Repeat("x", 800_000)},
		"patterns of a schema": {schemaRules(`{"items":{"pattern":"(x?){400}(x?){400}y"}}`),
			`["` + strings.Repeat("x", 800_000) + `"]`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := answercheck.Compile(test.rules)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			fault := c.Answer(chat, []byte(saying(test.text, "stop")))
			if fault == nil || !strings.Contains(fault.Text, "too many steps") {
				t.Errorf("got %v, want a fault for the steps", fault)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			if fault := c.Answer(chat, []byte(saying("", "stop"))); fault == nil ||
				strings.Contains(fault.Text, "steps") {
				t.Errorf("the next answer got %v", fault)
			}
		})
	}
}

// fanOut returns a schema that applies a last one to a value in width^depth ways.
func fanOut(depth, width int, last string) string {
	text := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range depth {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"},`, i+1)
		text += fmt.Sprintf(`"d%d":{"allOf":[%s{}]},`, i, strings.Repeat(ref, width))
	}
	return text + fmt.Sprintf(`"d%d":%s}}`, depth, last)
}

// A schema means what it says in each place that it can have.
func TestSchemas(t *testing.T) {
	for _, test := range []struct{ schema, holds, fails string }{
		{`true`, `1`, ``},
		{`{"items":false}`, `[]`, `[1]`},
		{`{"not":{"type":"string"}}`, `1`, `"1"`},
		{`{"const":{"a":[1]}}`, `{"a":[1.0]}`, `{"a":[2]}`},
		{`{"enum":[1,"a",null]}`, `null`, `true`},
		{`{"oneOf":[{"minimum":2},{"maximum":5}]}`, `7`, `3`},
		{`{"if":{"type":"string"},"then":{"minLength":2},"else":{"const":1}}`, `"ab"`, `2`},
		{`{"contains":{"const":1},"maxContains":1}`, `[2,1]`, `[1,1]`},
		{`{"propertyNames":{"maxLength":1}}`, `{"a":1}`, `{"ab":1}`},
		{`{"dependentSchemas":{"a":false},"dependentRequired":{"b":["c"]}}`, `{"b":1,"c":1}`,
			`{"a":1}`},
		{`{"uniqueItems":true}`, `[1,2]`, `[1,1.0]`},
		{`{"allOf":[{"$ref":"#/$defs/a"}],"unevaluatedProperties":false,` +
			`"$defs":{"a":{"properties":{"a":true}}}}`, `{"a":1}`, `{"a":1,"b":1}`},
		{`{"anyOf":[{"prefixItems":[true]},{"prefixItems":[true,{"const":2}]}],` +
			`"unevaluatedItems":false}`, `[1,2]`, `[1,3]`},
		{`{"$id":"tree:strict","$dynamicAnchor":"n","$ref":"tree:any","unevaluatedProperties":` +
			`false,"$defs":{"t":{"$id":"tree:any","$dynamicAnchor":"n","properties":{"v":true,` +
			`"c":{"items":{"$dynamicRef":"#n"}}}}}}`, `{"c":[{"v":1}]}`, `{"c":[{"x":1}]}`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"tree:strict",` +
			`"$recursiveAnchor":true,"$ref":"tree:any","unevaluatedProperties":false,"$defs":` +
			`{"t":{"$id":"tree:any","$recursiveAnchor":true,"properties":{"v":true,` +
			`"c":{"items":{"$recursiveRef":"#"}}}}}}`, `{"c":[{"v":1}]}`, `{"c":[{"x":1}]}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[true,` +
			`{"$ref":"#/definitions/a","minimum":5}],"additionalItems":false,` +
			`"definitions":{"a":{"type":"integer"}}}`, `[1,2]`, `[1,2,3]`},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"object"}`,
			`{"type":"objec"}`},
	} {
		c, err := answercheck.Compile(schemaRules(test.schema))
		if err != nil {
			t.Errorf("%s: %v", test.schema, err)
			continue
		}
		if fault := c.Answer(chat, []byte(saying(test.holds, "stop"))); fault != nil {
			t.Errorf("%s: %s got %v, want no fault", test.schema, test.holds, fault)
		}
		if test.fails == "" {
			continue
		}
		if fault := c.Answer(chat, []byte(saying(test.fails, "stop"))); fault == nil {
			t.Errorf("%s: %s got no fault", test.schema, test.fails)
		}
	}
}

// A batch whose check is slow leaves a place to others.
func TestPlacesAreShared(t *testing.T) {
	var checks [2]*answercheck.Check
	for i := range checks {
		var err error
		if checks[i], err = answercheck.Compile(answercheck.Rules{Pattern: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	places := answercheck.NewPlaces(2)
	release := places.Take(checks[0])
	var lines sync.WaitGroup
	for range 20 {
		lines.Go(func() { places.Take(checks[0])() })
	}
	for range 1000 { // they wait by now
		runtime.Gosched()
	}
	taken := make(chan struct{})
	lines.Go(func() {
		places.Take(checks[1])()
		close(taken)
	})
	select {
	case <-taken:
	case <-time.After(10 * time.Second):
		t.Error("a check waits for the lines of another one")
	}
	release()
	lines.Wait()
}

func FuzzCheck(f *testing.F) {
	f.Add(person, `^\{`, saying(`{"name":"Ann"}`, "stop"), uint8(0))
	f.Add(`{"$ref":"#"}`, `(a|b)*c`, `{"choices":[{"text":"ab","finish_reason":null}]}`, uint8(1))
	f.Add(`{"anyOf":[{"$dynamicRef":"#x"},{"unevaluatedItems":false}],"$dynamicAnchor":"x"}`, ``,
		`{"status":"completed","output":[{"type":"message","content":[]}]}`, uint8(2))
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `\pL{2,}`,
		saying(`"(("`, "length"), uint8(0))
	urls := []string{chat, "/v1/completions", "/v1/responses", "/v1/embeddings"}
	f.Fuzz(func(t *testing.T, schema, pattern, body string, url uint8) {
		rules := answercheck.Rules{Pattern: pattern, FinishReason: []string{"stop"}}
		if schema != "" {
			rules.Schema = json.RawMessage(schema)
		}
		c, err := answercheck.Compile(rules)
		if err != nil {
			return
		}
		fault := c.Answer(urls[int(url)%len(urls)], []byte(body))
		if fault != nil && (fault.Text == "" || len(fault.Message()) > 1000) {
			t.Errorf("got a fault of %d bytes: %s", len(fault.Message()), fault)
		}
	})
}
