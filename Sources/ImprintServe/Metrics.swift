internal import Foundation
internal import Synchronization

/// The metrics of a server, in the text format of Prometheus.
final class Metrics: Sendable {
    /// The number of images that wait for a batch.
    let queueLength = Atomic(0)
    private let state = Mutex(State())

    private struct State {
        /// The number of responses, by route and status.
        var responses: [Route: [Status: Int]] = [:]
        var latencies = Histogram(bounds: [
            0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
        ])
        var batchSizes = Histogram(bounds: [1, 2, 4, 8, 16, 32, 64, 128])
        var imageCount = 0
        var disconnectionCount = 0
        var evictionCount = 0
    }

    /// The kinds of requests, which limit the number of time series.
    enum Route: String {
        case health
        case metadata
        case infer
        case metrics
        case other
    }

    /// Counts a response; an inference request also counts in the latencies.
    func record(_ route: Route, _ response: Response, after duration: Duration) {
        state.withLock {
            $0.responses[route, default: [:]][response.status, default: 0] += 1
            guard route == .infer else { return }
            $0.imageCount += response.imageCount
            $0.latencies.record(duration / .seconds(1))
        }
    }

    /// Counts a batch.
    func recordBatch(_ size: Int) { state.withLock { $0.batchSizes.record(Double(size)) } }

    /// Counts a connection that the client closed before it had a response.
    func recordDisconnection() { state.withLock { $0.disconnectionCount += 1 } }

    /// Counts a connection that the server closed to make room for another one.
    func recordEviction() { state.withLock { $0.evictionCount += 1 } }

    /// Returns the metrics.
    func text(connectionCount: Int) -> String {
        let state = state.withLock { $0 }
        let responses = state.responses.flatMap { route, counts in
            counts.map { ("imprint_requests_total{route=\"\(route.rawValue)\",status=\"\($0.rawValue)\"}", $1) }
        }.sorted { $0.0 < $1.0 }
        var text = Self.heading("imprint_requests_total", "counter", "Responses, by route and HTTP status.")
        for (name, count) in responses { text += "\(name) \(count)\n" }
        text += state.latencies.text(
            "imprint_request_duration_seconds", "Time from the head of an inference request to its response.")
        text += state.batchSizes.text("imprint_batch_size", "Images per batch.")
        let numbers: [(String, String, String, Int?)] = [
            ("imprint_images_total", "counter", "Images with a prediction.", state.imageCount),
            (
                "imprint_disconnections_total", "counter", "Clients that closed the connection before the response.",
                state.disconnectionCount
            ),
            (
                "imprint_evictions_total", "counter", "Slow or idle connections that the server closed for new ones.",
                state.evictionCount
            ),
            (
                "imprint_queue_length", "gauge", "Images that wait for a batch.",
                queueLength.load(ordering: .relaxed)
            ),
            ("imprint_connections", "gauge", "Open connections.", connectionCount),
            ("process_resident_memory_bytes", "gauge", "Resident memory.", Self.residentMemory),
        ]
        for case (let name, let type, let help, let value?) in numbers {
            text += Self.heading(name, type, help) + "\(name) \(value)\n"
        }
        return text
    }

    fileprivate static func heading(_ name: String, _ type: String, _ help: String) -> String {
        "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    }

    /// The resident memory of the process in bytes; nil if the system does not report it.
    private static var residentMemory: Int? {
        // Apple platforms have no /proc. Its files report a size of 0, so read to the end.
        guard let file = FileHandle(forReadingAtPath: "/proc/self/statm"), let data = try? file.readToEnd() else {
            return nil
        }
        let pages = String(decoding: data, as: UTF8.self).split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return pages.map { $0 * Int(getpagesize()) }
    }
}

/// A cumulative histogram.
private struct Histogram {
    let bounds: [Double]
    /// The number of values in each bucket; the last bucket has no upper bound.
    private var counts: [Int]
    private var sum = 0.0

    init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    mutating func record(_ value: Double) {
        counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
        sum += value
    }

    func text(_ name: String, _ help: String) -> String {
        var text = Metrics.heading(name, "histogram", help)
        var total = 0
        for (bound, count) in zip(bounds.map { "\($0)" } + ["+Inf"], counts) {
            total += count
            text += "\(name)_bucket{le=\"\(bound)\"} \(total)\n"
        }
        return text + "\(name)_sum \(sum)\n\(name)_count \(total)\n"
    }
}
