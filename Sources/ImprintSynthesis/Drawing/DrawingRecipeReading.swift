package import Foundation
internal import ImprintCore
internal import ImprintImages

extension DrawingRecipe {
    /// Finds and reads a recipe.
    ///
    /// - Parameter name: The path of a JSON file (with a "/" or ending in ".json"), or the name of a recipe. A name is looked up as
    ///   `datasets/NAME.json` in the current folder and its parent folders, then in the folder of the program and its parent
    ///   folders. An installation has it in `share/imprint` of such a folder.
    /// - Throws: `DrawingError` if there is no such recipe, or if it is invalid.
    package static func load(named name: String) throws(DrawingError) -> DrawingRecipe {
        let current = URL(filePath: FileManager.default.currentDirectoryPath, directoryHint: .isDirectory)
        let program = Bundle.main.executableURL?.resolvingSymlinksInPath().deletingLastPathComponent()
        return try load(named: name, from: [current] + (program.map { [$0] } ?? []))
    }

    /// Finds and reads a recipe, searching each of `folders` and its parent folders.
    static func load(named name: String, from folders: [URL]) throws(DrawingError) -> DrawingRecipe {
        if name.contains("/") || name.hasSuffix(".json") {
            return try DrawingRecipe(contentsOf: URL(filePath: name))
        }
        var searched: Set<URL> = []
        var withRecipes: [URL] = []
        var available: Set<String> = []
        for datasets in folders.flatMap(\.withParentFolders).flatMap(\.recipeFolders) {
            guard searched.insert(datasets).inserted else { continue }
            let file = datasets.appending(path: "\(name).json")
            if FileManager.default.fileExists(atPath: file.path) { return try DrawingRecipe(contentsOf: file) }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: datasets.path)) ?? []
            let recipes = names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }
            if !recipes.isEmpty { withRecipes.append(datasets) }
            available.formUnion(recipes)
        }
        throw .noSuchRecipe(name: name, available: available.sorted(), folders: withRecipes)
    }

    /// Creates a recipe from a JSON file, and validates every field.
    /// - Throws: `DrawingError` if the file cannot be read or the recipe is invalid.
    package init(contentsOf file: URL) throws(DrawingError) {
        let content: Data?
        do throws(FileError) {
            content = try contents(ofFileOrPipe: file.path, limit: Self.maximumByteCount)
        } catch {
            let cause = if case .cannotRead(_, let reason) = error { reason } else { "\(error)".clause }
            throw .unreadable(file: file, reason: cause)
        }
        guard let data = content else {
            throw .unreadable(file: file, reason: "it has more than \(Self.maximumByteCount) bytes, expected a recipe")
        }
        try self.init(data, file: file)
    }

    /// The maximum size of a file in bytes (256 MiB), because the whole file is read into memory.
    private static let maximumByteCount = 256 << 20

    /// Creates a recipe from JSON; errors name `file`.
    init(_ data: Data, file: URL) throws(DrawingError) {
        if let format = BoxFormat(data, of: file) { throw .hasBoxes(file: file, format: format.rawValue) }
        guard let content = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else {
            throw .notAnObject(file: file)
        }
        // The version is checked first, because other fields of a newer format may have another meaning.
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

    /// The validation result of one field.
    private typealias Check = (isValid: Bool, field: String, found: String, expected: String)

    /// The first invalid field; nil if all are valid.
    private var problem: (field: String, found: String, expected: String)? {
        var checks: [Check] = [
            (!name.isEmpty && !name.contains("/"), "name", "\"\(name)\"", "a file name without \"/\""),
            ((16...1024).contains(size), "size", "\(size)", "16…1024 pixels"),
            (labels.count >= 2, "labels", "\(labels.count)", "at least 2 labels"),
            (Set(labels.map(\.name)).count == labels.count, "labels", "a list with a duplicate name", "unique names"),
            (count >= labels.count, "count", "\(count)", "at least one image per label"),
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
                shares.outlined + shares.hatched + shares.worn <= 1, "shares.worn", messageText(shares.worn),
                "a sum of at most 1 with outlined and hatched"
            ),
        ]
        for (index, label) in labels.enumerated() {
            let isFolderName = !label.name.isEmpty && !label.name.contains("/") && !label.name.hasPrefix(".")
            checks.append(
                (
                    isFolderName, "labels[\(index)].name", "\"\(label.name)\"",
                    "a folder name: no \"/\", no leading \".\""
                ))
            checks += check(label.logos, "labels[\(index)].marks")
        }
        if let compositing {
            checks += check(compositing.logos, "compositing.marks")
            checks += check(compositing.hardNegatives, "compositing.nearMisses")
            let names = SceneEffects.drawable.names
            checks += (compositing.effects ?? []).enumerated().map { index, name in
                (
                    names.contains(name), "compositing.effects[\(index)]", "\"\(name)\"",
                    "one of \(names.joined(separator: ", "))"
                )
            }
        }
        return checks.first { !$0.isValid }.map { ($0.field, $0.found, $0.expected) }
    }

    private func check(_ logos: [WeightedLogo], _ field: String) -> [Check] {
        [(!logos.isEmpty, field, "none", "at least one logo")]
            + logos.enumerated().map { position, logo in
                (
                    logo.weight > 0 && logo.weight <= 1e6, "\(field)[\(position)].weight", messageText(logo.weight),
                    "a number above 0 and at most 1,000,000"
                )
            }
    }

    private func check(_ range: ClosedRange<Float>, within limits: ClosedRange<Float>, _ field: String) -> Check {
        func text(_ range: ClosedRange<Float>) -> String {
            "[\(messageText(range.lowerBound)), \(messageText(range.upperBound))]"
        }
        return (
            limits.contains(range.lowerBound) && limits.contains(range.upperBound), "ranges.\(field)", text(range),
            "within \(text(limits))"
        )
    }

    private func check(_ share: Float, _ field: String) -> Check {
        ((0...1).contains(share), "shares.\(field)", messageText(share), "0…1")
    }
}

extension LogoKind {
    /// Creates a kind from its name; the error for an unknown name lists all kinds.
    package init(from decoder: any Decoder) throws {
        let name = try decoder.singleValueContainer().decode(String.self)
        guard let kind = LogoKind(rawValue: name) else {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "one of " + Self.allCases.map(\.rawValue).joined(separator: ", ")))
        }
        self = kind
    }
}

extension URL {
    /// The folders beside this one that may contain recipes: `datasets`, and `share/imprint/datasets` of an installation.
    fileprivate var recipeFolders: [URL] {
        let shared = appending(path: "share/imprint/datasets")
        return [appending(path: "datasets")] + (FileManager.default.fileExists(atPath: shared.path) ? [shared] : [])
    }

    /// The folder and its parent folders, up to the root.
    fileprivate var withParentFolders: [URL] {
        var folder = standardizedFileURL
        var folders = [folder]
        while folder.path != "/" && folders.count < 64 {
            folder = folder.deletingLastPathComponent()
            folders.append(folder)
        }
        return folders
    }
}

extension DrawingRecipe {
    /// The SHA-256 digest of the recipe as JSON with sorted keys.
    var digest: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // A recipe was read from JSON, so it can be encoded.
        guard let data = try? encoder.encode(self) else { preconditionFailure("the recipe \(name) cannot be encoded") }
        return SHA256.hexadecimal(of: Array(data))
    }

    /// The digest that version 1 computed: the digest of Swift's text description of the struct, with the names of its parts in
    /// version 1.
    var versionOneDigest: String {
        let names = [
            ("ImprintSynthesis.", "ImprintImages."), ("WeightedLogo(", "WeightedMark("), ("LogoKind.", "MarkKind."),
            ("logos: ", "marks: "), ("hardNegatives: ", "nearMisses: "), (", effects: nil", ""),
        ]
        let text = names.reduce("\(self)") { $0.replacing($1.0, with: $1.1) }
        return SHA256.hexadecimal(of: Array(text.utf8))
    }
}
