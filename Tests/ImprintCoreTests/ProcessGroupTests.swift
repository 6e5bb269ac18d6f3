import ImprintCore
import TestSupport
import Testing

/// Processes that divide a batch.
@Suite struct ProcessGroupTests {
    /// Values whose sum depends on the order of the additions.
    private static func value(_ rank: Int, _ index: Int) -> Float {
        Float((rank * 37 + index * 11) % 101) * (rank % 2 == 0 ? 1 : 1e-6)
    }

    @Test("Sums are added in the order of a binary tree, and all processes get them", arguments: [1, 2, 4, 8])
    func sums(count: Int) async throws {
        func tree(_ ranks: Range<Int>, _ index: Int) -> Float {
            guard ranks.count > 1 else { return Self.value(ranks.lowerBound, index) }
            let middle = ranks.lowerBound + ranks.count / 2
            return tree(ranks.lowerBound..<middle, index) + tree(middle..<ranks.upperBound, index)
        }
        let length = 1000
        let results = try await inProcesses(count) { group in
            var values = (0..<length).map { Self.value(group.rank, $0) }
            var later = values
            values.withUnsafeMutableBufferPointer { values in
                later.withUnsafeMutableBufferPointer { later in
                    group.allReduceInBackground(later.baseAddress!, count: length, parts: count)
                    group.allReduce(values.baseAddress!, count: length, parts: count)
                    group.waitForAllReduces()
                }
            }
            return [values, later]
        }
        let expected = (0..<length).map { tree(0..<count, $0) }
        #expect(results == Array(repeating: [expected, expected], count: count))
    }

    @Test("All processes get the values of all", arguments: [1, 2, 4, 8]) func gathers(count: Int) async throws {
        let results = try await inProcesses(count) { group in
            let strings = group.allGather(Array(repeating: UInt8(group.rank), count: group.rank))
            let isAny = [group.any(group.rank == count - 1), group.any(false)]
            return (strings, isAny, group.broadcast(group.rank + 5), group.minimum(10 - group.rank))
        }
        for (strings, isAny, first, minimum) in results {
            #expect(strings == (0..<count).map { Array(repeating: UInt8($0), count: $0) })
            #expect(isAny == [true, false])
            #expect(first == 5)
            #expect(minimum == 11 - count)
        }
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    @Test(
        "If a closure fails in some processes, all of them throw, and each with an error of its own throws that one",
        arguments: [[], [0], [1], [0, 1], [1, 3], [0, 1, 2, 3]])
    func failTogether(failing: [Int]) async throws {
        let results = try await inProcesses(4) { group -> [String] in
            // Twice, because the processes must still be at the same point after an error.
            (0..<2).map { _ in
                do {
                    return try group.failTogether {
                        guard !failing.contains(group.rank) else { throw Failure(description: "error \(group.rank)") }
                        return "value \(group.rank)"
                    }
                } catch {
                    return "\(error)"
                }
            }
        }
        for (rank, result) in results.enumerated() {
            let expected =
                failing.contains(rank)
                ? "error \(rank)"
                : failing.first.map { "process \($0) has failed: error \($0)." } ?? "value \(rank)"
            #expect(result == [expected, expected])
        }
    }

    @Test(
        "If a closure is cancelled in one process, it is cancelled in all, unless it fails in another",
        arguments: [false, true])
    func cancelTogether(fails: Bool) async throws {
        let results = try await inProcesses(4) { group -> String in
            do {
                try group.failTogether { () throws -> Void in
                    if group.rank == 0 { throw CancellationError() }
                    if fails && group.rank == 2 { throw Failure(description: "error 2") }
                }
                return "done"
            } catch is CancellationError {
                return "cancelled"
            } catch {
                return "\(error)"
            }
        }
        let failure = "process 2 has failed: error 2."
        let expected = fails ? [failure, failure, "error 2", failure] : Array(repeating: "cancelled", count: 4)
        #expect(results == expected)
    }

    @Test(
        "The other processes get the advice about an error",
        arguments: [
            ErrorAdvice(), ErrorAdvice(isWrongUsage: true), ErrorAdvice(hint: "Fix\nit."),
            ErrorAdvice(hint: "", isWrongUsage: true),
        ], ["error", "", "error\u{0}rest"])
    func advice(advice: ErrorAdvice, reason: String) async throws {
        let errors = try await inProcesses(2) { group -> ProcessFailedError? in
            do {
                try group.failTogether { if !group.isFirst { throw Failure(description: reason) } }
                return nil
            } catch {
                return error as? ProcessFailedError
            }
        } advice: { _ in
            advice
        }
        #expect(errors == [ProcessFailedError(rank: 1, reason: reason, advice: advice), nil])
    }

    @Test("An error without a description and a value that the first process cannot encode end all processes")
    func failsWithoutDescription() async throws {
        let results = try await inProcesses(2) { group -> [Bool] in
            let value = try? group.failTogether { () throws -> Int in
                guard !group.isFirst else { throw Failure(description: "") }
                return 5
            }
            return [value == nil, (try? group.broadcast(encoding: group.isFirst ? Double.nan : 1)) == nil]
        }
        #expect(results == [[true, true], [true, true]])
    }

    @Test("A closure runs once, and its error is unchanged, if there is a single process") func singleProcess() {
        let processes: ProcessGroup? = nil
        #expect(throws: Failure.self) {
            try processes.failTogether { () throws -> Void in throw Failure(description: "error") }
        }
        #expect((try? processes.failTogether { 5 }) == 5)
    }

    @Test(
        "The parts of a batch cover it without overlap", arguments: [1, 3, 7, 8, 15, 16, 31, 32, 33, 100], [1, 2, 4, 8])
    func parts(batch: Int, count: Int) async throws {
        let parts = try await inProcesses(count) { $0.part(of: batch) }
        let used = parts.prefix(parts[0].count)
        #expect(used.flatMap(\.images) == Array(0..<batch))
        #expect(parts.allSatisfy { $0.total == batch && $0.count == parts[0].count })
        // A part of a divided batch has at least four images. If there are fewer parts than processes, several have the same part.
        if parts[0].count > 1 { #expect(used.allSatisfy { $0.images.count >= 4 }) }
        #expect(parts.enumerated().allSatisfy { $1.index == $0 % parts[0].count })
    }

    @Test("Images are collected from the processes that have them", arguments: [2, 4])
    func images(count: Int) async throws {
        let (batch, length) = (19, 3)
        let values = (0..<(batch * length)).map(Float.init)
        let results = try await inProcesses(count) { group in
            let part = group.part(of: batch)
            let own = Array(values[part.images(of: part.index, times: length)])
            return (0..<2).map { slot in
                Array(
                    UnsafeBufferPointer(
                        start: group.allGatherImages(own, count: length, of: part, slot: slot), count: values.count))
            }
        }
        #expect(results == Array(repeating: [values, values], count: count))
    }
}
