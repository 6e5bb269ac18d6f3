public import Foundation
public import ImprintCore

/// A list of labelled photos that cannot be used.
public struct LabelListError: DescribedError, Equatable {
    /// The problem of a list.
    public enum Problem: Equatable, Sendable {
        /// The file is not text in UTF-8.
        case notText
        /// Nothing is at the path of the list or folder of photos, or permissions do not allow reading it.
        case missing
        /// The file is neither CSV nor JSON; `found` describes it ("a JPEG image", "a ZIP archive", "a pipe", "empty").
        case otherKind(found: String)
        /// The file has bounding boxes instead of labels; `format` is COCO, Create ML, Pascal VOC or YOLO.
        case hasBoxes(format: String)
        /// The file has no photos.
        case noPhotos
        /// The first line does not name the columns `photo` and `label`, or `photo` and `labels`; `found` is the line.
        case noHeader(found: String)
        /// A column or key is unknown; `missing` is a required one that the header or the entry lacks, or nil.
        case unknownColumn(String, missing: String?)
        /// The header does not have exactly one column of a kind; `found` are its columns of this kind.
        case wrongColumns(found: [String], expected: String)
        /// The number of fields in a line differs from the header.
        case fieldCount(found: Int, expected: Int)
        /// A quoted field does not end, or has text after its closing quote.
        case invalidQuotes
        /// An entry is not valid JSON, or a value has another type; `reason` describes it.
        case invalidJSON(reason: String)
        /// The photo has no path.
        case emptyPath
        /// The photo does not exist or is not a file.
        case missingPhoto(String)
        /// The path of a photo is a URL.
        case url(String)
        /// A label is empty.
        case emptyLabel(photo: String)
        /// The photo has other labels in an earlier line.
        case differentLabels(photo: String, line: Int)
        /// The photos have too few labels; `found` are their names.
        case tooFewLabels(found: [String], minimum: Int)
    }

    /// The file of the list.
    public let file: URL
    /// The line, from 1, or nil if the problem concerns the whole file.
    public let line: Int?
    /// The problem.
    public let problem: Problem

    /// Creates an error.
    public init(file: URL, line: Int? = nil, problem: Problem) {
        (self.file, self.line, self.problem) = (file, line, problem)
    }

    /// The error in one to three sentences.
    public var description: String {
        let position = file.displayPath + (line.map { ", line \($0)" } ?? "")
        return "\(position): \(text)"
    }

    private static let expectedSource =
        "Expected a folder with one sub-folder of photos per label, or a CSV, JSON or JSON Lines list of photos."

    private var text: String {
        switch problem {
        case .notText: "the file is not text in UTF-8. Expected a CSV or JSON list of photos. Save it as UTF-8."
        case .missing: "it does not exist, or you may not read its folder. \(Self.expectedSource) Check the path."
        case .otherKind(let found): "the file is \(found). \(Self.expectedSource) Name the folder or the list."
        case .hasBoxes(let format):
            "the file has bounding boxes in the \(format) format. Expected a list of photos with labels. Use it as the annotations of a "
                + "detector, or name a list with labels."
        case .noPhotos: "the list has no photos. Expected one line per photo. Add photos and their labels."
        case .noHeader(let found):
            "the header is \"\(visibleName(found))\". Expected \"photo,label\", or \"photo,labels\" for photos with several labels"
                + (found.contains(";") || found.contains("\t")
                    ? ". Separate the columns by commas." : ". Add this line, or replace the header by it.")
        case .unknownColumn(let name, nil):
            "\"\(visibleName(name))\" is not a known column. Expected only photo, and label or labels. Remove it."
        case .unknownColumn(let name, let missing?):
            "\"\(visibleName(name))\" is not a known column, and the column \(missing) is missing. Expected only photo, and label or labels. "
                + "Rename the column of paths to photo and the column of labels to label, and remove the other columns."
        case .wrongColumns(let found, let expected):
            found.isEmpty
                ? "the header has no column \(expected). Expected exactly one. Add it."
                : "the header has the columns \(found.joined(separator: " and ")). Expected exactly one column \(expected). "
                    + "Remove the others."
        case .fieldCount(let found, let expected):
            "found \(counted(found, "field")), expected \(expected). Put quotes around fields that contain commas."
        case .invalidQuotes:
            "a quoted field does not end, or has text after its closing quote. Write a quote within a quoted field twice."
        case .invalidJSON(let reason):
            "\(reason). Expected an object such as {\"photo\": \"a.jpg\", \"labels\": [\"cat\"]}."
        case .emptyPath: "the path of the photo is empty. Expected the path of an image file."
        case .missingPhoto(let path):
            "there is no photo \(path). Expected an image file; a relative path starts at the folder of the list. "
                + "Check the path."
        case .url(let url):
            "the photo \(url) is a URL, and Imprint does not download photos. Expected the path of a file. Download the photo, and write "
                + "its path."
        case .emptyLabel(let photo):
            "the photo \(photo) has an empty or invisible label. Expected a name. Write it, or, for photos without any label, "
                + "name the column labels."
        case .differentLabels(let photo, let other):
            "the photo \(photo) has other labels in line \(other). Expected each photo only once. Remove one of the lines."
        case .tooFewLabels(let found, let minimum):
            "found \(counted(found.count, "label"))"
                + (found.isEmpty ? "" : " (\(visibleNames(found).joined(separator: ", ")))")
                + ", expected at least \(minimum). Add photos with other labels."
        }
    }
}
