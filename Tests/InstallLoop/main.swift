import Foundation
import ImprintStore

// Installs two models in turn, with a rollback after every fifth installation, until the process is killed.
// Usage: InstallLoop FOLDER FILE SHA256 FILE SHA256
let arguments = CommandLine.arguments
let store = try ModelStore(at: URL(filePath: arguments[1]))
var count = 0
while true {
    let index = 2 + count % 2 * 2
    try await store.install(
        from: URL(filePath: arguments[index]), verification: Verification(sha256: arguments[index + 1]))
    count += 1
    if count % 5 == 0, try store.previous != nil { try store.rollBack() }
}
