package import Foundation

/// A file format of photos with bounding boxes; raw values are names.
package enum BoxFormat: String, Sendable {
    case coco = "COCO"
    case createML = "Create ML"
    case yolo = "YOLO"
    case pascalVOC = "Pascal VOC"

    /// Recognizes the format of a file from the extension of its name and from its content; nil if the file has no boxes.
    /// - Parameters:
    ///   - content: The whole content, without a byte order mark.
    ///   - file: The file, which is not read.
    package init?(_ content: some Collection<UInt8>, of file: URL) {
        guard let format = Self(onlyPossibleIn: content, of: file), format.fits(ArraySlice(content), of: file) else {
            return nil
        }
        self = format
    }

    /// Returns the only format of boxes that a file can have, from its extension or the first character of its content; nil if it can have none.
    ///
    /// The file may still be of another kind, such as a list of photos in JSON.
    package init?(onlyPossibleIn content: some Collection<UInt8>, of file: URL) {
        if file.isYAML || file.isClassList {
            self = .yolo
            return
        }
        switch content.first(where: { !(0x09...0x0D).contains($0) && $0 != 0x20 }) {
        case UInt8(ascii: "{"): self = .coco
        case UInt8(ascii: "["): self = .createML
        case UInt8(ascii: "<"): self = .pascalVOC
        default: return nil
        }
    }

    /// Whether content that can only have this format does have it.
    private func fits(_ content: ArraySlice<UInt8>, of file: URL) -> Bool {
        switch self {
        case .coco: Self.keysOfFirstObject(content).isSuperset(of: ["images", "annotations"])
        case .createML:
            !Self.keysOfFirstObject(content).isDisjoint(with: ["annotations", "annotation"])
                && !Self.keysOfFirstObject(content).isDisjoint(with: ["image", "imagefilename"])
        // A list of classes says nothing about boxes; data sets of classifiers have such a list, too.
        case .yolo: file.isYAML && Self.isYOLO(content)
        case .pascalVOC: Self.text(content.prefix(FileKind.prefixLength)).contains("<annotation")
        }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    /// Returns a line of YAML whose key, if it begins with one, has neither quotation marks nor spaces before the colon: `train: a` for
    /// `"train" : a`.
    package static func withPlainKey(_ line: Substring) -> Substring {
        let key: Substring
        var rest: Substring
        if let quote = line.first, quote == "\"" || quote == "'" {
            key = line.dropFirst().prefix { $0 != quote }
            rest = line.dropFirst(key.count + 1)
            guard rest.first == quote else { return line }
            rest = rest.dropFirst()
        } else {
            key = line.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            rest = line.dropFirst(key.count)
        }
        rest = rest.drop { $0 == " " || $0 == "\t" }
        return rest.first == ":" && !key.isEmpty ? key + rest : line
    }

    /// Returns the key of data.yaml for the part of a dataset split that a folder is named after; nil for other names.
    ///
    /// The key is train, val or test, for names such as "train2017", "Valid", "testing", "training_set", "seg_train" or "obj_train_data" (CVAT).
    package static func partKey(ofFolder name: some StringProtocol) -> String? {
        var name = withoutNumber(name.lowercased()[...])
        if let suffix = ["set", "data", "images", "photos"].first(where: name.hasSuffix) {
            name = withoutNumber(name.dropLast(suffix.count))
        }
        let words = name.split { "-_ ".contains($0) }
        if words.count == 2, Self.contentWords.contains(words[0]) { name = words[1] }
        return switch name {
        case "train", "training": "train"
        case "val", "valid", "validation": "val"
        case "test", "testing": "test"
        default: nil
        }
    }

    /// Returns the key of data.yaml for the part of a dataset split that the first folder of a relative path is named after; nil for other names.
    package static func partKey(ofPath path: String) -> String? {
        path.split(separator: "/").first.flatMap { partKey(ofFolder: $0) }
    }

    /// The words before the part in the names of folders, such as "images_train".
    private static let contentWords: Set<Substring> = [
        "data", "dataset", "image", "images", "img", "imgs", "obj", "photo", "photos", "seg",
    ]

    /// Returns a name without the digits, hyphens, underscores and spaces at its end.
    private static func withoutNumber(_ name: Substring) -> Substring {
        name.dropLast(name.reversed().prefix { $0.isNumber || "-_ ".contains($0) }.count)
    }

    /// Whether YAML describes a data set of YOLO: it names the labels, and folders or lists of photos.
    private static func isYOLO(_ content: ArraySlice<UInt8>) -> Bool {
        let lines = text(content).split(whereSeparator: \.isNewline).map { withPlainKey($0) }
        func has(_ key: String) -> Bool { lines.contains { $0.hasPrefix("\(key):") } }
        return has("names") && ["path", "train", "val", "valid", "validation", "test"].contains(where: has)
    }

    /// Returns the keys of the JSON object that the content is, or of the first object in its array.
    private static func keysOfFirstObject(_ content: ArraySlice<UInt8>) -> Set<String> {
        var keys: Set<String> = []
        var depth = 0
        var strings = JSONStrings()
        /// The last string, with its quotes.
        var string = content.startIndex..<content.startIndex
        for (index, byte) in zip(content.indices, content) {
            if strings.contains(byte) {
                string = (string.upperBound == index ? string.lowerBound : index)..<(index + 1)
                continue
            }
            switch byte {
            case UInt8(ascii: ":") where depth == 1: keys.insert(text(content[string].dropFirst().dropLast()))
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "["): depth += depth > 0 ? 1 : 0
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                if depth <= 0 { return keys }
            default: continue
            }
        }
        return keys
    }
}

extension URL {
    /// Whether the name of the file has an extension of YAML.
    package var isYAML: Bool { ["yaml", "yml"].contains(pathExtension.lowercased()) }

    /// Whether the file has the name of a list of the classes of a YOLO data set, as LabelImg, Label Studio and Darknet write it.
    package var isClassList: Bool { ["classes.txt", "obj.names"].contains(lastPathComponent.lowercased()) }
}
