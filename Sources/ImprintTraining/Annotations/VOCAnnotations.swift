internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// A reader of the Pascal VOC format: one XML file per photo.
///
/// The numbers of a box are the positions of its edges from the upper left corner of the photo, as LabelImg, CVAT and Roboflow write them. The
/// original data set counts pixels from 1, so its boxes are up to one pixel off.
struct VOCAnnotations {
    private let files: [URL]
    private let photos: URL?
    /// The folder of the data set.
    private let root: URL

    /// Creates a reader of one XML file.
    init(file: URL, photos: URL?) {
        (files, self.photos, root) = ([file], photos, file.absoluteURL.deletingLastPathComponent())
    }

    /// Creates a reader of all XML files of a data set.
    /// - Throws: The errors of `annotationPaths(in:extensions:isRecursive:skipsUnreadable:)`.
    init(folder: URL, photos: URL?) throws {
        let xml = try Self.folder(in: folder) ?? folder
        files = try annotationPaths(in: xml, extensions: ["xml"]).map { xml.appending(path: $0) }
        (self.photos, root) = (photos, folder)
    }

    /// Returns the folder of the XML files of a data set; nil if its readable folders have none.
    ///
    /// An unreadable sub-folder is not an error here: a data set of another format may not need it.
    static func folder(in folder: URL) throws -> URL? {
        func hasFiles(_ folder: URL) throws -> Bool {
            try !annotationPaths(in: folder, extensions: ["xml"], skipsUnreadable: true).isEmpty
        }
        let annotations = folder.appending(path: "Annotations")
        if FileStatus(annotations)?.isFolder == true, try hasFiles(annotations) { return annotations }
        return try hasFiles(folder) ? folder : nil
    }

    func contents() throws(BoxAnnotationsError) -> AnnotationContents {
        var contents = AnnotationContents(labels: [], photos: [])
        var labels: Set<String> = []
        var folders: Set<URL> = []
        for file in files {
            let annotation = try VOCFile(file)
            let folder = file.absoluteURL.deletingLastPathComponent()
            let parent = folder.deletingLastPathComponent()
            let finder = PhotoFinder(
                folders: photos.map { [$0] }
                    ?? [folder, root, root.appending(path: "JPEGImages"), root.appending(path: "images")]
                    + (folder.lastPathComponent.lowercased() == "annotations"
                        ? [parent.appending(path: "JPEGImages"), parent.appending(path: "images"), parent] : []))
            contents.folders += finder.folders.filter { folders.insert($0).inserted }
            let (url, isStated) = Self.photo(annotation.fileName, of: file, finder)
            if !isStated { contents.warnings.add(.foundByStem, url.lastPathComponent) }
            let size = annotation.width.flatMap { width in annotation.height.map { (width, $0) } }
            contents.photos.append(
                StatedPhoto(url: url, source: file, size: size, isInPixels: true, boxes: annotation.boxes))
            labels.formUnion(annotation.boxes.map(\.label))
        }
        contents.labels = Array(labels)
        return contents
    }

    /// Returns the photo of an XML file, and whether it has the stated name, if there is one.
    private static func photo(_ name: String?, of file: URL, _ finder: PhotoFinder) -> (url: URL, isStated: Bool) {
        if let name, let url = finder.existing(name) { return (url, true) }
        let stem = file.deletingPathExtension().lastPathComponent
        let endings = ImageFormat.allCases.flatMap(\.fileExtensions)
        for ending in endings + endings.map({ $0.uppercased() }) {
            if let url = finder.existing("\(stem).\(ending)") { return (url, name == nil) }
        }
        return (finder.url(name ?? "\(stem).jpg"), true)
    }
}

/// The content of an XML file.
private struct VOCFile {
    private(set) var fileName: String?
    private(set) var width: Double?
    private(set) var height: Double?
    private(set) var boxes: [StatedBox] = []
    private let file: URL
    private var object = Object()
    private var objects = 0

    /// An object element; the parts of an object have the same elements, one level deeper, and are ignored.
    private struct Object {
        var name: String?
        var isDifficult = false
        var hasBox = false
        /// The numbers of xmin, ymin, xmax and ymax.
        var edges: [String: Double] = [:]
    }

    init(_ file: URL) throws(BoxAnnotationsError) {
        self.file = file
        var scanner = XMLScanner(try annotationText(file))
        do {
            while let event = try scanner.next() {
                switch event {
                case .start(let name): try start(name, scanner.path)
                // Deeper elements are parts of an object, or unknown.
                case .end(let name, let text) where scanner.path.count < 4:
                    let value = text.trimmingWhiteSpace()
                    try end((scanner.path.dropFirst() + [name]).joined(separator: "/"), value)
                case .end: break
                }
            }
        } catch let problem as XMLScanner.Problem {
            throw .invalidSyntax(file: file, format: "XML", reason: "line \(problem.line): \(problem.reason)")
        } catch let error as BoxAnnotationsError {
            throw error
        } catch {
            throw .invalidSyntax(file: file, format: "XML", reason: "\(error)".clause)
        }
    }

    private mutating func start(_ name: String, _ path: [String]) throws(BoxAnnotationsError) {
        if path.count == 1, name != "annotation" {
            throw fail("", "the root element is \(name.prefix(40))", expected: "the element annotation")
        }
        if path == ["annotation", "object"] {
            objects += 1
            object = Object()
        }
        if path == ["annotation", "object", "bndbox"] { object.hasBox = true }
    }

    /// - Parameter path: The path of the element in the root element, as in "size/width".
    private mutating func end(_ path: String, _ value: String) throws(BoxAnnotationsError) {
        let entry = "object \(objects)"
        switch path {
        case "filename":
            guard value.isEmpty || PhotoFinder.isValid(value) else {
                throw fail("filename", "the value is not a path", expected: "the name of a photo")
            }
            fileName = value.isEmpty ? nil : value
        case "size/width": width = Double(value) ?? .nan
        case "size/height": height = Double(value) ?? .nan
        case "object/name": object.name = value
        case "object/difficult": object.isDifficult = value == "1"
        case "object/bndbox/xmin", "object/bndbox/ymin", "object/bndbox/xmax", "object/bndbox/ymax":
            let name = String(path.suffix(4))
            guard let number = Double(value) else {
                throw fail(entry, "\(name) is \"\(value.prefix(40))\"", expected: "a number")
            }
            object.edges[name] = number
        case "object":
            guard let name = object.name, !isBlank(name) else {
                throw fail(entry, "the name is missing or blank", expected: "a name")
            }
            let edges = ["xmin", "ymin", "xmax", "ymax"].compactMap { object.edges[$0] }
            guard edges.count == 4 else {
                throw fail(
                    entry, object.hasBox ? "the bndbox is incomplete" : "the bndbox is missing",
                    expected: "a bndbox with xmin, ymin, xmax and ymax in pixels")
            }
            boxes.append(
                StatedBox(
                    label: name, x: edges[0], y: edges[1], width: edges[2] - edges[0], height: edges[3] - edges[1],
                    isCrowd: object.isDifficult, entry: entry))
        default: break
        }
    }

    private func fail(_ entry: String, _ found: String, expected: String) -> BoxAnnotationsError {
        .invalidEntry(file: file, entry: entry, found: found, expected: expected)
    }
}
