import CAllocationCounter
import Foundation
import ImprintCore

/// The times of repeated runs, and how often they asked for memory.
struct Measurement {
    /// Seconds a run, ascending.
    private let times: [Double]
    /// Allocations a run.
    let allocations: Double

    /// Runs `body` for about `seconds`, at least five times, after two runs that do not count.
    init(seconds: Double, _ body: () -> Void) {
        body()
        body()
        let mostRuns = 1_000_000
        var times = [Double]()
        times.reserveCapacity(mostRuns)
        let clock = ContinuousClock()
        let start = clock.now
        let allocations = allocation_count()
        repeat {
            let before = clock.now
            body()
            times.append((clock.now - before) / .seconds(1))
        } while times.count < 5 || (clock.now - start < .seconds(seconds) && times.count < mostRuns)
        self.allocations = Double(allocation_count() - allocations) / Double(times.count)
        self.times = times.sorted()
    }

    /// The milliseconds of a run: median, least and most.
    var milliseconds: (median: Double, least: Double, most: Double) {
        (1e3 * times[times.count / 2], 1e3 * times[0], 1e3 * times[times.count - 1])
    }

    /// How many of something happen in a second, of which `perRun` happen in a run: median, least and most.
    func rate(of perRun: Double) -> (median: Double, least: Double, most: Double) {
        (perRun / times[times.count / 2], perRun / times[times.count - 1], perRun / times[0])
    }
}

extension UnsafeMutableBufferPointer<Float> {
    /// Fills the buffer with numbers of the stream of that name.
    func fill(named name: String) {
        var stream = RandomStream(seed: 1, name)
        for i in indices { self[i] = stream.uniform(in: -1...1) }
    }
}

/// A number with a fixed count of decimal places.
func decimal(_ number: Double, places: Int = 1) -> String { String(format: "%.\(places)f", number) }

/// Columns of a table, the first to the left and the others to the right of their widths.
func row(_ columns: [String], widths: [Int]) -> String {
    zip(columns, widths).enumerated().map { place, column in
        let space = String(repeating: " ", count: max(0, column.1 - column.0.count))
        return place == 0 ? column.0 + space : space + column.0
    }.joined()
}
