internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages

/// Writes the results of photos: to standard output, and as copies of the photos.
final class PhotoOutput {
    /// The form of standard output.
    enum Style { case text, json, csv }

    /// A result and the annotated copy of its photo.
    struct Prepared {
        let result: PhotoResult
        let annotatedCopy: [UInt8]?
        let detections: DetectionFiles.Prepared?
    }

    private let format: PhotoFormat
    private let style: Style
    private let copies: SortedCopies?
    private let annotations: AnnotatedCopies?
    private let detections: DetectionFiles?
    private let table: PhotoTable
    /// The number of detections of each label so far.
    private var totals: [Int]

    init(
        _ format: PhotoFormat, style: Style, copies: SortedCopies?, annotations: AnnotatedCopies?,
        detections: DetectionFiles?
    ) {
        (self.format, self.style, self.copies, self.annotations) = (format, style, copies, annotations)
        self.detections = detections
        table = PhotoTable(
            hasBoxes: format.hasBoxes, hasVerdicts: format.hasVerdicts, countedLabels: format.countedLabels)
        totals = Array(repeating: 0, count: format.countedLabels?.count ?? 0)
    }

    /// Starts the output.
    func begin() throws {
        if style == .csv { try Terminal.put(table.header) }
    }

    /// Does the part of the work that does not depend on the order of the photos; any number of threads can call it.
    func prepared(_ result: PhotoResult, of photo: PhotoInput) throws -> Prepared {
        Prepared(
            result: result, annotatedCopy: try annotations?.copy(of: photo, result),
            detections: try detections?.prepared(result, of: photo))
    }

    /// Writes a result; the copies are complete before the line is printed.
    func write(_ prepared: Prepared, of photo: PhotoInput, line: (PhotoResult) -> any Encodable) throws {
        let result = prepared.result
        try copies?.copy(photo, label: result.isRejected ? nil : result.classifications.first?.label)
        if let copy = prepared.annotatedCopy { try annotations?.write(copy, of: photo) }
        if let files = prepared.detections { try detections?.write(files, result, of: photo) }
        if let labels = format.countedLabels {
            for (index, count) in result.counts(of: labels).enumerated() { totals[index] += count }
        }
        switch style {
        case .text: try Terminal.show(format.text(result))
        case .json: try Terminal.emit(line(result))
        case .csv: try Terminal.put(table.rows(result))
        }
    }

    /// Writes the error of a photo to standard error, and also as a line of JSON or CSV.
    func write(_ error: any Error, of photo: PhotoInput) throws {
        Terminal.fail("Error: \(error)")
        let failure = PhotoFailureLine(file: photo.path, error: "\(error)")
        switch style {
        case .text: break
        case .json: try Terminal.emit(failure)
        case .csv: try Terminal.put(table.row(failure))
        }
    }

    /// Writes the files that need all photos.
    /// - Parameter isComplete: Whether all photos were processed.
    /// - Returns: The lines about the files, the copies and the totals, for the end.
    func finish(isComplete: Bool) throws -> [String] {
        let files = try detections?.finish(isComplete: isComplete) ?? []
        let total = format.countedLabels.map {
            "Total: \(PhotoFormat.text(counts: totals, of: $0) ?? format.noneText)."
        }
        return [copies?.summary, annotations?.summary].compactMap { $0 } + files + (total.map { [$0] } ?? [])
    }
}
