import Foundation
import ImprintModel

// Saves the personalizations in some files over and over under one name, until it is killed: SaveLoop NAME FILE …
let paths = CommandLine.arguments.dropFirst().map { URL(filePath: $0) }
let versions = try paths.dropFirst().map { try Personalization(contentsOf: $0) }
while !versions.isEmpty {
    for version in versions { try version.write(to: paths[0]) }
}
