// A service for the recipe: WORK is how much each request does.
package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strconv"
)

func digest(work int) string {
	text := "order"
	for round := 0; round < work; round++ {
		text = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	return text
}

func main() {
	work, err := strconv.Atoi(os.Getenv("WORK"))
	if err != nil {
		work = 1
	}
	host := os.Getenv("HOST")
	if host == "" {
		host = "127.0.0.1"
	}
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(response, digest(work))
	})
	fmt.Println(http.ListenAndServe(host+":"+os.Getenv("PORT"), nil))
	os.Exit(1)
}
