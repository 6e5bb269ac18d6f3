package import Foundation
internal import ImprintImages

extension DrawingRecipe {
    /// Finds and reads a recipe.
    ///
    /// - Parameter name: The path of a JSON file (anything with a "/" or ending in ".json"), or the name of a recipe:
    ///   `datasets/NAME.json` in the current folder or the nearest one above it, else in the folder of the running
    ///   program or the nearest one above that.
    /// - Throws: `DrawingError` if there is no such recipe, or if it is not valid.
    package static func load(named name: String) throws(DrawingError) -> DrawingRecipe {
        let current = URL(filePath: FileManager.default.currentDirectoryPath, directoryHint: .isDirectory)
        let program = Bundle.main.executableURL?.resolvingSymlinksInPath().deletingLastPathComponent()
        return try load(named: name, from: [current] + (program.map { [$0] } ?? []))
    }

    /// The same, looking upward from each of `folders` in turn.
    static func load(named name: String, from folders: [URL]) throws(DrawingError) -> DrawingRecipe {
        if name.contains("/") || name.hasSuffix(".json") {
            return try DrawingRecipe(contentsOf: URL(filePath: name))
        }
        var searched: [URL] = []
        var available: Set<String> = []
        for folder in folders.flatMap(\.withFoldersAbove) {
            let datasets = folder.appending(path: "datasets")
            guard !searched.contains(datasets) else { continue }
            searched.append(datasets)
            let file = datasets.appending(path: "\(name).json")
            if FileManager.default.fileExists(atPath: file.path) { return try DrawingRecipe(contentsOf: file) }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: datasets.path)) ?? []
            available.formUnion(names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) })
        }
        throw .noSuchRecipe(name: name, available: available.sorted(), searched: searched)
    }

    /// Reads the recipe in a JSON file and checks every field; throws `DrawingError`.
    package init(contentsOf file: URL) throws(DrawingError) {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            throw .unreadable(file: file, reason: reason(of: error))
        }
        try self.init(data, file: file)
    }

    /// Reads a recipe from JSON; `file` is named in errors.
    init(_ data: Data, file: URL) throws(DrawingError) {
        guard let content = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else {
            throw .notAnObject(file: file)
        }
        // The version comes first: of a newer format nothing else can be judged.
        if let format = content["format"] as? Int, format != Self.formatVersion {
            throw .invalidField(
                file: file, field: "format", found: "\(format)", expected: "\(Self.formatVersion)")
        }
        do {
            self = try JSONDecoder().decode(Self.self, from: data)
        } catch let error as DecodingError {
            throw DrawingError(error, content: content, file: file)
        } catch {
            throw .unreadable(file: file, reason: reason(of: error))
        }
        if let problem {
            throw .invalidField(file: file, field: problem.field, found: problem.found, expected: problem.expected)
        }
    }

    static let formatVersion = 1

    /// Whether the value of a field can be drawn.
    private typealias Check = (isValid: Bool, field: String, found: String, expected: String)

    /// The first field whose value cannot be drawn, if any.
    private var problem: (field: String, found: String, expected: String)? {
        var checks: [Check] = [
            (!name.isEmpty && !name.contains("/"), "name", "\"\(name)\"", "a file name without \"/\""),
            ((16...1024).contains(size), "size", "\(size)", "16…1024 pixels"),
            (labels.count >= 2, "labels", "\(labels.count)", "at least 2 labels"),
            (Set(labels.map(\.name)).count == labels.count, "labels", "a name twice", "different names"),
            (count >= labels.count, "count", "\(count)", "at least an image per label"),
            check(ranges.span, within: 0.1...1, "span"),
            check(ranges.rotationDegrees, within: -180...180, "rotationDegrees"),
            check(ranges.tiltDegrees, within: 0...60, "tiltDegrees"),
            check(ranges.blur, within: 0...0.03, "blur"),
            check(ranges.noise, within: 0...0.5, "noise"),
            check(shares.busyBackground, "busyBackground"), check(shares.plate, "plate"),
            check(shares.lightInk, "lightInk"), check(shares.twoColors, "twoColors"),
            check(shares.handDrawn, "handDrawn"),
            check(shares.outlined, "outlined"), check(shares.hatched, "hatched"), check(shares.worn, "worn"),
            (
                shares.outlined + shares.hatched + shares.worn <= 1, "shares.worn", "\(shares.worn)",
                "at most 1 together with outlined and hatched"
            ),
        ]
        for (index, label) in labels.enumerated() {
            let isFolderName = !label.name.isEmpty && !label.name.contains("/") && !label.name.hasPrefix(".")
            checks.append(
                (
                    isFolderName, "labels[\(index)].name", "\"\(label.name)\"",
                    "a folder name: no \"/\", no leading \".\""
                ))
            checks += check(label.marks, "labels[\(index)].marks")
        }
        if let compositing {
            checks += check(compositing.marks, "compositing.marks")
            checks += check(compositing.nearMisses, "compositing.nearMisses")
        }
        return checks.first { !$0.isValid }.map { ($0.field, $0.found, $0.expected) }
    }

    private func check(_ marks: [WeightedMark], _ field: String) -> [Check] {
        [(!marks.isEmpty, field, "none", "at least one mark")]
            + marks.enumerated().map { position, mark in
                (
                    mark.weight > 0 && mark.weight <= 1e6, "\(field)[\(position)].weight", "\(mark.weight)",
                    "a number above 0, at most a million"
                )
            }
    }

    private func check(_ range: ClosedRange<Float>, within limits: ClosedRange<Float>, _ field: String) -> Check {
        (
            limits.contains(range.lowerBound) && limits.contains(range.upperBound), "ranges.\(field)",
            "[\(range.lowerBound), \(range.upperBound)]", "within [\(limits.lowerBound), \(limits.upperBound)]"
        )
    }

    private func check(_ share: Float, _ field: String) -> Check {
        ((0...1).contains(share), "shares.\(field)", "\(share)", "0…1")
    }
}

extension MarkKind {
    /// Decodes the name of a kind; an unknown one is an error that lists those there are.
    package init(from decoder: any Decoder) throws {
        let name = try decoder.singleValueContainer().decode(String.self)
        guard let kind = MarkKind(rawValue: name) else {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "one of " + Self.allCases.map(\.rawValue).joined(separator: ", ")))
        }
        self = kind
    }
}

extension URL {
    /// The folder, the one that holds it, and so on up to the root.
    fileprivate var withFoldersAbove: [URL] {
        var folder = standardizedFileURL
        var folders = [folder]
        while folder.path != "/" && folders.count < 64 {
            folder = folder.deletingLastPathComponent()
            folders.append(folder)
        }
        return folders
    }
}
