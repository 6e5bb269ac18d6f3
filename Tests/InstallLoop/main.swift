import Foundation
import ImprintStore

// Installs two models in turn, and rolls back now and then, until it is killed: InstallLoop FOLDER FILE SHA256 FILE SHA256
let arguments = CommandLine.arguments
let store = try ModelStore(at: URL(filePath: arguments[1]))
var count = 0
while true {
    let place = 2 + count % 2 * 2
    try await store.install(
        from: URL(filePath: arguments[place]), verification: Verification(sha256: arguments[place + 1]))
    count += 1
    if count % 5 == 0, try store.previous != nil { try store.rollBack() }
}
