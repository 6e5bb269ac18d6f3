import Foundation
import ImprintImages
import TestSupport
import Testing

/// The commands of README.md, in its order.
@Suite struct ReadmeTests {
    /// Commands that need the network, a browser or many minutes; the parser must accept them all the same.
    private static let long = ["models install", "train-detector", "studio", "detect centerface"]

    private static let commands: [String] = {
        let page = (try? String(contentsOf: packageFolder.appending(path: "README.md"), encoding: .utf8)) ?? ""
        return page.split(separator: "\n").filter { $0.hasPrefix("    imprint ") }.map { line in
            let command = line.split(separator: "  #", maxSplits: 1)[0].trimmingCharacters(in: .whitespaces)
            return String(command.dropFirst("imprint ".count))
        }
    }()

    @Test("The commands run in their order") func order() throws {
        #expect(Self.commands.count >= 12)
        try withTemporaryFolder { folder in
            try prepare(folder)
            for command in Self.commands {
                let isLong = Self.long.contains { command.hasPrefix($0) }
                // Zero threads are rejected only after all options are parsed.
                let run = try shell(
                    "IMPRINT_HOME=home \"$imprint\" \(command)" + (isLong ? " --threads 0" : ""), folder: folder)
                let message = Comment(rawValue: "imprint \(command)\n\(run.errors)")
                if isLong {
                    #expect(run.status == 64 && run.errors.contains("--threads is 0, expected 1 to"), message)
                } else {
                    #expect(run.status == 0, message)
                }
            }
        }
    }

    /// Makes the photos, the artwork and the detector that the commands name.
    private func prepare(_ folder: URL) throws {
        for name in ["photos", "my-photos"] { try writeImages(to: folder.appending(path: name), count: 12) }
        for name in ["more-photos/one.png", "photo.jpg"] {
            let file = folder.appending(path: name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try FileManager.default.copyItem(at: folder.appending(path: "photos/dark/0.png"), to: file)
        }
        var logo = RasterImage(width: 128, height: 128, filledWith: 255)
        for row in 32..<96 {
            for column in 24..<(24 + row / 2) {
                for channel in 0..<3 { logo.samples[(row * 128 + column) * 3 + channel] = 20 }
            }
        }
        try ImageFile.write(logo, to: folder.appending(path: "logo.png"))
        try writeRandomDetector(logos: ["Logo"], to: folder.appending(path: "logo.imprint"))
    }
}
