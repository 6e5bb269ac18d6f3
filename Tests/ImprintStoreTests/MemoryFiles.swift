import Foundation
import ImprintCore
import ImprintModel
import Synchronization

@testable import ImprintStore

/// Files in memory that simulate the state of a disk after a power cut.
final class MemoryFiles: StoreFiles {
    /// A fault at one of the operations.
    enum Fault {
        /// This and all following operations fail.
        case powerCut
        /// Only this operation fails.
        case error
    }

    struct PowerCut: Error {}

    /// The loss of unflushed data in a power cut.
    enum Loss: CaseIterable {
        case all, none, some
    }

    private struct File {
        var bytes = Data()
        /// The number of flushed bytes.
        var flushedCount = 0
    }

    private struct State {
        var files: [Int: File] = [:]
        /// The file of each name.
        var names: [String: Int] = [:]
        var flushedNames: [String: Int] = [:]
        var operationCount = 0
        var fault: (operation: Int, Fault)?
        var isCut = false
    }

    private let state: Mutex<State>

    init() { state = Mutex(State()) }

    private init(_ state: sending State) { self.state = Mutex(state) }

    /// The number of operations so far.
    var operationCount: Int { state.withLock(\.operationCount) }

    /// Copies the files; the operation with this index fails.
    func copy(failingAt operation: Int? = nil, _ fault: Fault = .powerCut) -> MemoryFiles {
        var copied = state.withLock { $0 }
        copied.operationCount = 0
        copied.fault = operation.map { ($0, fault) }
        return MemoryFiles(copied)
    }

    /// Returns the files after a reboot.
    func rebooted(losing loss: Loss, seed: Int) -> MemoryFiles {
        var random = RandomStream(seed: UInt64(seed), "reboot")
        let before = state.withLock { $0 }
        var after = State()
        for (number, file) in before.files.sorted(by: { $0.key < $1.key }) {
            var remaining = file
            switch loss {
            case .none: break
            case .all: remaining.bytes = file.bytes.prefix(file.flushedCount)
            case .some:
                // A file may have its new length but not yet its bytes.
                let count = random.pick(file.flushedCount...file.bytes.count)
                let whole = random.pick(file.flushedCount...count)
                remaining.bytes = file.bytes.prefix(whole) + Data(count: count - whole)
            }
            remaining.flushedCount = remaining.bytes.count
            after.files[number] = remaining
        }
        for name in Set(before.names.keys).union(before.flushedNames.keys).sorted() {
            let isFlushed = loss == .all || loss == .some && random.chance(0.5)
            after.names[name] = isFlushed ? before.flushedNames[name] : before.names[name]
        }
        after.flushedNames = after.names
        return MemoryFiles(after)
    }

    /// Flips a bit.
    func damage(_ name: String, at offset: Int) {
        state.withLock { state in
            guard let number = state.names[name] else { preconditionFailure("no \(name)") }
            state.files[number]?.bytes[offset] ^= 1
        }
    }

    /// Counts an operation, and runs it unless it must fail.
    private func operation<Result>(_ body: (inout State) throws -> Result) throws -> Result {
        try state.withLock { state in
            if state.isCut { throw PowerCut() }
            defer { state.operationCount += 1 }
            guard let (index, fault) = state.fault, index == state.operationCount else { return try body(&state) }
            switch fault {
            case .error: throw FileError.cannotWrite(path: "file", reason: "a failing disk", remedy: "fix it")
            case .powerCut:
                // The operation is executed but not flushed, so it depends on `Loss` whether it survives.
                let flushed = state
                _ = try? body(&state)
                state.flushedNames = flushed.flushedNames
                for number in state.files.keys {
                    state.files[number]?.flushedCount = flushed.files[number]?.flushedCount ?? 0
                }
                state.isCut = true
                throw PowerCut()
            }
        }
    }

    private func missing(_ name: String) -> FileError { .cannotRead(path: name, reason: "no such file") }

    func path(of name: String) -> String { "memory/\(name)" }

    func names() throws -> [String] { try operation { $0.names.keys.sorted() } }

    func size(of name: String) throws -> Int? {
        try operation { state in state.names[name].flatMap { state.files[$0]?.bytes.count } }
    }

    func read(_ name: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try mapped(name).withUnsafeBytes { bytes in
            // In chunks, as from a disk.
            for start in stride(from: 0, to: bytes.count, by: 100) {
                try body(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + 100, bytes.count)]))
            }
        }
    }

    func mapped(_ name: String) throws -> Data {
        try operation { state in
            guard let number = state.names[name], let file = state.files[number] else { throw missing(name) }
            return Data(file.bytes)
        }
    }

    func modelFile(_ name: String) throws -> ModelFile { try ModelFile([UInt8](mapped(name)), named: name) }

    func append(_ bytes: Data, to name: String) throws {
        try operation { state in
            let number = state.names[name] ?? state.files.count
            state.names[name] = number
            state.files[number, default: File()].bytes += bytes
        }
    }

    func flush(_ name: String) throws {
        try operation { state in
            guard let number = state.names[name], let file = state.files[number] else { throw missing(name) }
            state.files[number]?.flushedCount = file.bytes.count
        }
    }

    func rename(_ name: String, to other: String) throws {
        try operation { state in
            guard let number = state.names.removeValue(forKey: name) else { throw missing(name) }
            state.names[other] = number
        }
    }

    func remove(_ name: String) throws {
        try operation { state in state.names[name] = nil }
    }

    func flushNames() throws { try operation { $0.flushedNames = $0.names } }

    func lock(_ name: String) throws -> StoreLock? { try operation { _ in Lock() } }

    private struct Lock: StoreLock {}
}

extension RandomStream {
    /// Returns a random integer in a range.
    fileprivate mutating func pick(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + index(below: range.count)
    }
}
