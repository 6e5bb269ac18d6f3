import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// A response of a server that misbehaves, and its effect on a download.
struct InvalidResponse: Sendable, CustomTestStringConvertible {
    enum Effect: Equatable {
        case installed, interrupted, invalidResponse, tooLarge, unexpectedStatus(Int)

        /// The effect of an error; nil for other errors.
        init?(_ error: any Error) {
            switch error as? StoreError {
            case .interrupted: self = .interrupted
            case .invalidResponse: self = .invalidResponse
            case .tooLarge: self = .tooLarge
            case .unexpectedStatus(_, let status): self = .unexpectedStatus(status)
            default: return nil
            }
        }
    }

    let testDescription: String
    /// The effects that different versions of libcurl may have.
    let effects: [Effect]
    let answer: @Sendable (RawServer.Connection, _ body: Data) -> Void

    private init(
        _ name: String, _ effects: [Effect], answer: @escaping @Sendable (RawServer.Connection, _ body: Data) -> Void
    ) {
        (testDescription, self.effects, self.answer) = (name, effects, answer)
    }

    init(
        _ name: String, _ effects: Effect..., answer: @escaping @Sendable (RawServer.Connection, _ body: Data) -> Void
    ) {
        self.init(name, effects, answer: answer)
    }

    /// Sends a header and the body without its last `end` bytes.
    init(_ name: String, _ effects: Effect..., header: String, droppingLast end: Int = 0) {
        (testDescription, self.effects) = (name, effects)
        answer = { connection, body in
            connection.send(header.replacing("LENGTH", with: "\(body.count)"))
            connection.send(Data(body.dropLast(end)))
        }
    }

    /// Sends only a text.
    init(_ name: String, _ effects: Effect..., text: String) {
        (testDescription, self.effects) = (name, effects)
        answer = { connection, _ in connection.send(text) }
    }

    private static let chunkedHeader = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// Sends the body in chunks, then `end`.
    private static func chunks(_ name: String, _ effects: Effect..., end: String) -> InvalidResponse {
        InvalidResponse(name, effects) { connection, body in
            connection.send("\(chunkedHeader)\(String(body.count, radix: 16))\r\n")
            connection.send(body)
            connection.send("\r\n" + end)
        }
    }

    static let all = connections + lengths + chunked + statusLines + headers

    private static let connections = [
        InvalidResponse("closed at once", .interrupted, text: ""),
        InvalidResponse("closed within the status line", .interrupted, .invalidResponse, text: "HTTP/1.1 20"),
        InvalidResponse("closed after the status line", .interrupted, text: "HTTP/1.1 200 OK\r\n"),
        InvalidResponse(
            "closed within a header", .interrupted, text: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"1"),
        InvalidResponse("closed after a header", .interrupted, text: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n"),
        InvalidResponse("closed before the body", .interrupted, text: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
        InvalidResponse(
            "closed within the body", .interrupted, header: "HTTP/1.1 200 OK\r\nContent-Length: LENGTH\r\n\r\n",
            droppingLast: 1),
        InvalidResponse("closed after 100 Continue", .interrupted, text: "HTTP/1.1 100 Continue\r\n\r\n"),
        InvalidResponse("reset at once", .interrupted) { connection, _ in connection.reset() },
        InvalidResponse("reset within the header", .interrupted) { connection, _ in
            connection.send("HTTP/1.1 200 OK\r\nX: ")
            usleep(20_000)
            connection.reset()
        },
        InvalidResponse("reset within the body", .interrupted) { connection, body in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
            connection.send(Data(body.prefix(100)))
            usleep(20_000)
            connection.reset()
        },
        InvalidResponse("reset within a body without length", .interrupted) { connection, body in
            connection.send("HTTP/1.1 200 OK\r\n\r\n")
            connection.send(Data(body.prefix(100)))
            usleep(20_000)
            connection.reset()
        },
    ]

    private static let lengths =
        [
            InvalidResponse(
                "more bytes than Content-Length", .installed,
                answer: { connection, body in
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
                    connection.send(body + Data(count: 1000))
                }),
            InvalidResponse(
                "two equal lengths", .installed,
                header: "HTTP/1.1 200 OK\r\nContent-Length: LENGTH\r\nContent-Length: LENGTH\r\n\r\n"),
            InvalidResponse(
                "two different lengths", .invalidResponse,
                header: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: LENGTH\r\n\r\n"),
            InvalidResponse(
                "a length and chunks", .installed, .invalidResponse,
                answer: { connection, body in
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")
                    connection.send("\(String(body.count, radix: 16))\r\n")
                    connection.send(body)
                    connection.send("\r\n0\r\n\r\n")
                }),
            InvalidResponse(
                "a huge length", .tooLarge, header: "HTTP/1.1 200 OK\r\nContent-Length: \(Int.max)\r\n\r\n"),
        ]
        + ["9223372036854775808", "99999999999999999999999999"].map {
            InvalidResponse(
                "a length of \($0)", .tooLarge, .invalidResponse, .interrupted,
                header: "HTTP/1.1 200 OK\r\nContent-Length: \($0)\r\n\r\n")
        }
        + ["-1", "-9223372036854775808", "", "x", "0x100", "1e3", "1,2", "5 5", "+5"].map {
            InvalidResponse(
                "a length of \"\($0)\"", .invalidResponse, .interrupted,
                header: "HTTP/1.1 200 OK\r\nContent-Length: \($0)\r\n\r\n")
        }

    private static let chunked = [
        chunks("chunks without trailers", .installed, end: "0\r\n\r\n"),
        chunks("trailers", .installed, end: "0\r\nX-Digest: 1\r\nX-More: 2\r\n\r\n"),
        chunks("trailers that look like a header", .installed, end: "0\r\nContent-Length: 5\r\nLocation: /x\r\n\r\n"),
        chunks("closed within a trailer", .interrupted, end: "0\r\nX-Digest: 1"),
        chunks("closed before the last chunk", .interrupted, end: ""),
        chunks("closed within the last chunk", .interrupted, end: "0"),
        chunks("closed within the size of a chunk", .interrupted, end: "1f"),
        chunks("closed within a chunk", .interrupted, .invalidResponse, end: "1f\r\nshort"),
        chunks("a chunk size that is not a number", .interrupted, .invalidResponse, end: "zz\r\n"),
        chunks("a negative chunk size", .interrupted, .invalidResponse, end: "-5\r\nhello\r\n0\r\n\r\n"),
        chunks("an overflowing chunk size", .interrupted, .invalidResponse, end: "ffffffffffffffffff\r\nhello"),
        chunks("a trailer without a colon", .invalidResponse, end: "0\r\nnothing\r\n\r\n"),
        chunks(
            "a trailer of 10 MB", .interrupted, .invalidResponse,
            end: "0\r\nX: \(String(repeating: "x", count: 10_000_000))\r\n\r\n"),
        InvalidResponse("endless trailers", .invalidResponse) { connection, _ in
            connection.send("\(chunkedHeader)0\r\n")
            while connection.send("X-Trailer: \(String(repeating: "x", count: 1000))\r\n") {}
        },
    ]

    private static let statusLines =
        [
            InvalidResponse("HTTP/1.0 without length", .installed, header: "HTTP/1.0 200 OK\r\n\r\n"),
            InvalidResponse("a status line without reason", .installed, header: "HTTP/1.1 200\r\n\r\n"),
            InvalidResponse(
                "100 Continue", .installed,
                header: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: LENGTH\r\n\r\n"),
            InvalidResponse(
                "103 Early Hints", .installed,
                header: "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
            InvalidResponse(
                "101 Switching Protocols", .unexpectedStatus(101), .invalidResponse, .interrupted,
                header: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
            InvalidResponse("endless informational responses", .invalidResponse) { connection, _ in
                while connection.send("HTTP/1.1 100 Continue\r\nX: y\r\n\r\n") {}
            },
            InvalidResponse("HTTP/0.9", .invalidResponse, header: ""),
            InvalidResponse("binary data", .invalidResponse, .interrupted) { connection, _ in
                connection.send(Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 13) }))
            },
            InvalidResponse("a TLS alert", .invalidResponse, .interrupted) { connection, _ in
                connection.send(Data([21, 3, 1, 0, 2, 2, 80]))
            },
        ]
        + [
            "HTTP/1.1 OK", "HTTP/1.1", "HTTP/9.9 200 OK", "HTTP/1.1 -200 OK", "HTTP/1.1 099 OK", "HTTP/1.1 000 OK",
            "HTTP/1.1 20 OK", "ICY 200 OK", "XTTP/1.1 200 OK", "HTTP 200 OK", "200 OK",
        ].map {
            InvalidResponse(
                "the status line \"\($0)\"", .invalidResponse, .interrupted,
                header: "\($0)\r\nContent-Length: 5\r\n\r\n")
        }

    private static let headers =
        [
            InvalidResponse("line breaks without carriage returns", .installed, header: "HTTP/1.1 200 OK\nX: y\n\n"),
            InvalidResponse(
                "headers without a name and without a value", .installed, .invalidResponse,
                header: "HTTP/1.1 200 OK\r\n: x\r\nX:\r\nContent-Length: LENGTH\r\n\r\n"),
            InvalidResponse(
                "a header without a colon", .installed, .invalidResponse,
                header: "HTTP/1.1 200 OK\r\nnothing\r\nContent-Length: LENGTH\r\n\r\n"),
            InvalidResponse("a folded header", .installed, header: "HTTP/1.1 200 OK\r\nX: y\r\n  z: 1\r\n\r\n"),
            InvalidResponse(
                "a compressed body", .invalidResponse, header: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
            InvalidResponse(
                "a body with an unknown encoding", .invalidResponse,
                header: "HTTP/1.1 200 OK\r\nContent-Encoding: x, y\r\n\r\n"),
            InvalidResponse(
                "a compressed transfer", .invalidResponse,
                header: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
            InvalidResponse(
                "a NUL in a header", .invalidResponse, .interrupted, header: "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"),
            InvalidResponse(
                "a carriage return in a header", .invalidResponse, header: "HTTP/1.1 200 OK\r\nX: a\rb: c\r\n\r\n"),
            InvalidResponse("an invalid UTF-8 header", .installed) { connection, body in
                connection.send("HTTP/1.1 200 OK\r\nX: ")
                connection.send(Data([0xff, 0xfe, 0xc0]))
                connection.send("\r\n\r\n")
                connection.send(body)
            },
            InvalidResponse(
                "a header of 50 KB", .installed,
                header: "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 50_000))\r\n\r\n"),
            InvalidResponse(
                "a header of 10 MB", .invalidResponse,
                header: "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 10_000_000))\r\n\r\n"),
            InvalidResponse("a header without end", .invalidResponse) { connection, _ in
                connection.send("HTTP/1.1 200 OK\r\nX: ")
                while connection.send(String(repeating: "x", count: 10_000)) {}
            },
            InvalidResponse("endless headers", .invalidResponse) { connection, _ in
                connection.send("HTTP/1.1 200 OK\r\n")
                while connection.send("X-Header: \(String(repeating: "x", count: 100))\r\n") {}
            },
            InvalidResponse(
                "a first header that starts with a space", .installed, .invalidResponse,
                header: "HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: LENGTH\r\n\r\n"),
            InvalidResponse(
                "6000 headers", .installed, .invalidResponse,
                header: "HTTP/1.1 200 OK\r\n\(String(repeating: "X: y\r\n", count: 6000))\r\n"),
            InvalidResponse("endless headers without a colon", .invalidResponse) { connection, _ in
                connection.send("HTTP/1.1 200 OK\r\n")
                while connection.send("\(String(repeating: "x", count: 100))\r\n") {}
            },
        ]
}
