internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintInterop

/// The options of detect that count, cut out or export detections.
struct DetectionOutputOptions: ParsableArguments {
    @Flag(help: "Print the number of detections of each label instead of the detections.")
    var count = false

    @Option(
        help: ArgumentHelp(
            "Cut each detection out of its photo, at full resolution, into the sub-folder of DIR with the name of its label; existing "
                + "files are not replaced.", valueName: "dir"))
    var cropTo: String?

    @Option(
        help: ArgumentHelp(
            "Write all detections to FILE in COCO format, which train-detector --annotations also reads.",
            valueName: "file"))
    var coco: String?

    func validate() throws {
        if let cropTo { try requireOutputPath(cropTo, "--crop-to") }
        if let coco { try checkOutputs([OutputFile(option: "--coco", path: coco, kind: .detections)]) }
    }

    /// Returns the files that the options ask for.
    /// - Parameter labels: The labels that detections can have.
    func files(labels: [String]) -> DetectionFiles {
        DetectionFiles(
            crops: cropTo.map(DetectionCrops.init),
            coco: coco.map { ($0, COCOFile($0, labels: labels, header: OutputKind.detectionsHeader)) })
    }
}

/// The files with detections of all photos.
struct DetectionFiles {
    var crops: DetectionCrops?
    var coco: (path: String, file: COCOFile)?

    /// The parts of the files for one photo.
    struct Prepared {
        var crops: [DetectionCrops.Crop] = []
        var size: (width: Int, height: Int)?
    }

    /// Does the part of the work that does not depend on the order of the photos; any number of threads can call it.
    func prepared(_ result: PhotoResult, of photo: PhotoInput) throws -> Prepared {
        Prepared(
            crops: try crops?.crops(of: photo, result) ?? [],
            size: try coco.map { _ in try ImageFile.information(of: photo.url).uprightSize })
    }

    /// Writes the crops of a photo, and adds its detections to the COCO file.
    func write(_ prepared: Prepared, _ result: PhotoResult, of photo: PhotoInput) throws {
        try crops?.write(prepared.crops, of: photo)
        guard let coco, let size = prepared.size else { return }
        let objects = result.classifications.compactMap { detection in
            detection.box.map { COCOFile.Object(detection.label, $0, detection.confidence) }
        }
        coco.file.add(objects, inPhotoAt: photo.path, size: size)
    }

    /// Writes the files that need all photos.
    /// - Parameter isComplete: Whether all photos were processed.
    /// - Returns: The lines about the files.
    func finish(isComplete: Bool) throws -> [String] {
        [crops?.summary, try writeCOCO(isComplete: isComplete)].compactMap { $0 }
    }

    /// Writes the COCO file; incomplete detections, and those of no photo, do not replace earlier ones.
    /// - Returns: The line about a complete file; nil after the warning that the file is incomplete or not written, which --quiet does not omit.
    private func writeCOCO(isComplete: Bool) throws -> String? {
        guard let (chosenPath, file) = coco else { return nil }
        let path = vacantPath(chosenPath, .detections)
        if !isComplete || file.imageCount == 0, let status = FileStatus(URL(filePath: path)), status.size > 0 {
            let reason = isComplete ? "no photo was processed" : "not all photos were processed"
            Terminal.warn("Did not replace \(path), because \(reason).")
            return nil
        }
        try file.write(to: path)
        let written =
            "\(counted(file.objectCount, "detection")) in \(counted(file.imageCount, "photo")) to \(path)"
        guard isComplete else {
            Terminal.warn("Wrote only \(written), because not all photos were processed.")
            return nil
        }
        return "Wrote \(written)."
    }
}
