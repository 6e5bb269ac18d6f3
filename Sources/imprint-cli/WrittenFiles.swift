internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintFormats
internal import ImprintImages

/// What a verb writes under a name that its user chooses.
enum WrittenFile: String {
    case weights = "weights file"
    case personalization = "personalization"
    case page = "page"
    case foreignModel = "ONNX or Core ML model"

    /// Checks that the file takes the place of nothing but an earlier one of its kind: a slip must not cost a photo or a model.
    ///
    /// An empty file, as `mktemp` makes it, may be filled.
    func require(_ path: String, _ option: String) throws {
        let url = URL(filePath: path).resolvingSymlinksInPath()
        let attributes = try? FileManager.default.attributesOfItem(atPath: url.path)
        guard attributes?[.type] as? FileAttributeType == .typeRegular, attributes?[.size] as? Int != 0 else { return }
        if !isKind(of: url) {
            throw ValidationError(
                "\(option) is \(path), which is there and no \(rawValue), so it is not replaced; choose another name.")
        }
    }

    private func isKind(of url: URL) -> Bool {
        switch self {
        case .weights: WeightsFile.isOne(url)
        case .personalization: Personalization.isOne(url)
        case .foreignModel: ModelImporter.recognizes(url)
        case .page:
            (try? FileHandle(forReadingFrom: url))?.readData(ofLength: 15).starts(with: Data("<!doctype html".utf8))
                == true
        }
    }
}

/// Checks that what an option names to be written is none of the photos that are read.
func requireNoPhoto(_ path: String, _ option: String, of photos: [URL]) throws {
    if photos.contains(where: { place($0.path) == place(path) }) {
        throw ValidationError(
            "\(option) is \(path), a photo that is read here and which it would replace; choose another name.")
    }
}

/// Where a path leads, so that two paths to one file are the same.
func place(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().standardizedFileURL.path }
