import CFuzzer
import Foundation

guard Format.chosen != nil else {
    FileHandle.standardError.write(
        Data("Set IMPRINT_FUZZ to one of \(Format.allCases.map(\.rawValue).joined(separator: ", ")).\n".utf8))
    exit(2)
}
try Format.prepare()
atexit { try? FileManager.default.removeItem(at: Format.folder) }

var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
exit(
    LLVMFuzzerRunDriver(&count, &arguments) { bytes, count in
        do { try Format.chosen?.read(bytes.map { Data(bytes: $0, count: count) } ?? Data()) } catch {}
        return 0
    })
