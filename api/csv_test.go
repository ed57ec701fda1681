package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
)

const csvBody = `{"model":"m","messages":[{"role":"user","content":"{{text}}"}],"n":"{{n|json}}"}`

func importingCSV(name, csv string) string {
	return request(fmt.Sprintf(`{"input_url":%q,"csv":%s}`, teamURL+name, csv))
}

// rowLine is the line of a row, of the template csvBody.
func rowLine(id, text, n string) string {
	return fmt.Sprintf(`{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":`+
		`{"model":"m","messages":[{"role":"user","content":"%s"}],"n":%s}}`+"\n", id, text, n)
}

func TestBatchOfACSVObject(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/rows.csv", "id,n,text\r\na,1,\"say \"\"hi\"\"\nnow\"\r\nb,2,ü\r\n")
	ours := importingCSV("batch/rows.csv", `{"custom_id":"id","body":`+csvBody+`}`)
	if got := b.post("/v1/batches?dry_run=true", ours).ok(); got["lines"] != 2.0 {
		t.Errorf("the dry run has %v", got)
	}
	b.leftNothing()
	made := b.post("/v1/batches", ours).ok()
	if made["status"] != "validating" || made["request_counts"].(map[string]any)["total"] != 2.0 {
		t.Errorf("got %v", made)
	}
	file := b.get("/v1/files/" + made["input_file_id"].(string)).ok()
	if file["filename"] != "rows.csv.jsonl" {
		t.Errorf("got file %v", file)
	}
	b.get("/v1/files/" + file["id"].(string) + "/content").isWhole(
		rowLine("a", `say \"hi\"\nnow`, "1") + rowLine("b", "ü", "2"))

	id := made["id"].(string)
	b.change(id, func(b *store.Batch) { b.State, b.CompletedAt = store.Completed, b.CreatedAt })
	b.post("/v1/batches/"+id+"/retry", "").refused(400, "", "nothing_failed") // it has no csv
}

// Rows without a line, and lines with faults, are reported with the number of their row.
func TestFaultsOfRows(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/rows.csv", "id,n,text\na,1,x\na,2,y\nb,3\nc,no,z\n")
	made := b.post("/v1/batches", importingCSV("batch/rows.csv",
		`{"custom_id":"id","body":`+csvBody+`}`)).ok()
	var got []string
	for _, fault := range made["errors"].(map[string]any)["data"].([]any) {
		f := fault.(map[string]any)
		got = append(got, fmt.Sprint(f["line"], " ", f["code"]))
	}
	if want := "2 duplicate_custom_id, 3 invalid_row, 4 invalid_row"; made["status"] != "failed" ||
		strings.Join(got, ", ") != want {
		t.Errorf("got %s with %q, want %s", made["status"], got, want)
	}
	b.put("batch/rows.csv", "id,n,text\na\nb\n")
	made = b.post("/v1/batches", importingCSV("batch/rows.csv", `{"body":`+csvBody+`}`)).ok()
	if data := made["errors"].(map[string]any)["data"].([]any); len(data) != 2 {
		t.Errorf("got %v, want the faults of two rows", data)
	}
}

// Objects of both kinds may be below a URL.
func TestBatchOfObjectsOfBothKinds(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in/1.jsonl", line("a"))
	b.put("batch/in/2.CSV", "n,text\n1,x\n")
	made := b.post("/v1/batches", importingCSV("batch/in/", `{"body":`+csvBody+`}`)).ok()
	ids := made["tidefill"].(map[string]any)["input_file_ids"].([]any)
	b.get("/v1/files/" + ids[0].(string) + "/content").isWhole(line("a"))
	b.get("/v1/files/" + ids[1].(string) + "/content").isWhole(rowLine("row-1", "x", "1"))
}

func TestCSVOptionsThatAreRefused(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/rows.csv", "id,n,text\na,1,x\n")
	b.put("batch/in.jsonl", line("a"))
	b.put("batch/empty.csv", "id,n,text\n")
	b.put("batch/quote.csv", "id,n,text\na,1,\""+strings.Repeat("x", 2<<20))
	const param = "tidefill.csv"
	ours := `{"body":` + csvBody + `}`
	b.post("/v1/batches", importing("batch/rows.csv")).refused(400, param,
		"missing_required_parameter", "is a CSV file")
	b.post("/v1/batches", importingCSV("batch/in.jsonl", ours)).refused(400, param,
		"invalid_value", "leave it out")
	b.post("/v1/batches", request(`{"csv":`+ours+`}`)).refused(400, param, "invalid_value",
		"tidefill.input_url")
	for csv, words := range map[string]string{
		`{"body":{"a":"{{b"}}`:                       "{{ without }}",
		`{"custom_id":"no","body":{"a":"{{text}}"}}`: `no column "no"`,
		`{"body":{"a":"{{no}}"}}`:                    `there is no column "no"`,
	} {
		at := param
		if strings.Contains(words, "without") { // known without the object
			at += ".body"
		}
		b.post("/v1/batches", importingCSV("batch/rows.csv", csv)).refused(400, at,
			"invalid_value", words)
	}
	b.post("/v1/batches", importingCSV("batch/rows.csv", `{}`)).refused(400, param+".body",
		"missing_required_parameter")
	b.post("/v1/batches", importingCSV("batch/rows.csv", `{"body":[]}`)).refused(400, param+".body",
		"invalid_type")
	b.post("/v1/batches", importingCSV("batch/empty.csv", ours)).refused(400, param,
		"invalid_value", "no row below")
	b.post("/v1/batches", importingCSV("batch/quote.csv", ours)).refused(400, param,
		"invalid_value", "is a quote missing?")
	b.leftNothing()
}

// The storage fails in the middle of a conversion.
func TestCSVObjectThatCannotBeRead(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/rows.csv", "n,text\n"+strings.Repeat("1,"+strings.Repeat("x", 1000)+"\n", 1000))
	var reads atomic.Int64
	b.proxy.Choose(func(r *http.Request) servers.Fault {
		if r.Header.Get("Range") == "" || reads.Add(1) == 1 {
			return servers.None
		}
		return servers.Error
	})
	b.post("/v1/batches", importingCSV("batch/rows.csv", `{"body":`+csvBody+`}`)).
		refused(503, "tidefill.input_url", "storage_away")
	b.leftNothing()
}
