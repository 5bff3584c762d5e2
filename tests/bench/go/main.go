// Command fixed is an admission webhook that answers every review with one and the same response.
//
// It is the floor for any webhook in Go's net/http: TLS, HTTP/1.1, the body read to its end, the
// uid copied into the answer. It does not even decode the review.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
)

// The API server writes the uid first, before anything that a user may have put into the pod.
var uidStart = []byte(`"uid":"`)

type response struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	PatchType        string            `json:"patchType"`
	Patch            []byte            `json:"patch"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
}

type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

// Where the uid goes in the answer that is made beforehand.
const uidMark = "00000000-0000-0000-0000-000000000000"

func main() {
	listen := flag.String("listen", "", "address to listen on")
	certificate := flag.String("cert", "", "file with the certificate, PEM")
	key := flag.String("key", "", "file with its key, PEM")
	patch := flag.String("patch", "", "file with the JSON Patch of every answer")
	flag.Parse()

	before, after, err := answer(*patch)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Addr:    *listen,
		Handler: handler(before, after),
		// An empty map turns HTTP/2 off: the API server speaks HTTP/1.1 to webhooks.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}

// answer returns what stands before the uid and what stands after it in every answer.
func answer(file string) (before, after []byte, err error) {
	patch, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	body, err := json.Marshal(review{
		APIVersion: "admission.k8s.io/v1",
		Kind:       "AdmissionReview",
		Response: response{
			UID:              uidMark,
			Allowed:          true,
			PatchType:        "JSONPatch",
			Patch:            patch,
			AuditAnnotations: map[string]string{"result": "placed"},
		},
	})
	if err != nil {
		return nil, nil, err
	}
	before, after, _ = bytes.Cut(body, []byte(uidMark))
	return before, after, nil
}

func handler(before, after []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, rest, found := bytes.Cut(body, uidStart)
		uid, _, closed := bytes.Cut(rest, []byte(`"`))
		if !found || !closed {
			http.Error(w, "no uid", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(bytes.Join([][]byte{before, uid, after}, nil))
	})
}
