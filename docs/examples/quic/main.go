// SPDX-License-Identifier: Apache-2.0

// Command quic sends bytes over one QUIC stream (quic-go, its CUBIC) until its time is over; the receiving end counts them.
//
//	quic receive PORT
//	quic send ADDRESS:PORT SECONDS
//
// The receiver prints "received BYTES" about ten times a second: of the stream, in order, since the beginning (docs/kernel-time.md).
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	protocol    = "fairlane-example"
	reportEvery = 100 * time.Millisecond
	windowBytes = 16 << 20 // never the limit
)

var config = &quic.Config{
	DisablePathMTUDiscovery:    true,
	InitialPacketSize:          1452, // 1480 bytes of IP
	InitialStreamReceiveWindow: windowBytes, MaxStreamReceiveWindow: windowBytes,
	InitialConnectionReceiveWindow: windowBytes, MaxConnectionReceiveWindow: windowBytes,
}

func main() {
	// Read by quic-go when it opens a socket: a packet is a frame, as for TCP in this runtime, and none is marked.
	os.Setenv("QUIC_GO_DISABLE_GSO", "true")
	os.Setenv("QUIC_GO_DISABLE_ECN", "true")
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "quic:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) == 2 && words[0] == "receive" {
		return receive(":" + words[1])
	}
	if len(words) == 3 && words[0] == "send" {
		seconds, err := strconv.ParseFloat(words[2], 64)
		if err != nil || seconds <= 0 {
			return fmt.Errorf("SECONDS %q is not a number above 0", words[2])
		}
		return send(words[1], time.Duration(seconds*float64(time.Second)))
	}
	return errors.New("usage: quic receive PORT | quic send ADDRESS:PORT SECONDS")
}

// receive takes one connection and counts the bytes of its stream; it ends when the sender's time is over.
func receive(address string) error {
	public, private, _ := ed25519.GenerateKey(rand.Reader) // no errors: crypto/rand since Go 1.24
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return err
	}
	certificates := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}
	listener, err := quic.ListenAddr(address, &tls.Config{Certificates: certificates, NextProtos: []string{protocol}}, config)
	if err != nil {
		return err
	}
	connection, err := listener.Accept(context.Background())
	if err != nil {
		return err
	}
	stream, err := connection.AcceptUniStream(context.Background())
	buffer, received, due := make([]byte, 32*1024), 0, time.Now()
	for err == nil {
		var count int
		count, err = stream.Read(buffer)
		received += count
		if now := time.Now(); !now.Before(due) || err != nil {
			fmt.Println("received", received)
			due = now.Add(reportEvery)
		}
	}
	if closed := new(quic.ApplicationError); errors.As(err, &closed) && closed.Remote {
		return nil
	}
	return err
}

// send writes for a time, then leaves without waiting for what is under way.
func send(address string, span time.Duration) error {
	over, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	// The receiver made its certificate for this run: there is nobody to check it with.
	connection, err := quic.DialAddr(over, address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, config)
	if err != nil {
		return err
	}
	stream, err := connection.OpenUniStream()
	if err != nil {
		return err
	}
	context.AfterFunc(over, func() { connection.CloseWithError(0, "the time is over") })
	for buffer := make([]byte, 32*1024); err == nil; {
		_, err = stream.Write(buffer)
	}
	if over.Err() == nil {
		return err
	}
	time.Sleep(reportEvery) // the close is sent by then
	return nil
}
