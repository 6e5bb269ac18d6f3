import Foundation
import ImprintModel

// Reads the personalizations in the files and writes them in turn to one file until the process is killed: SaveLoop TARGET FILE …
let paths = CommandLine.arguments.dropFirst().map { URL(filePath: $0) }
let versions = try paths.dropFirst().map { try Personalization(contentsOf: $0) }
while !versions.isEmpty {
    for version in versions { try version.write(to: paths[0]) }
}
