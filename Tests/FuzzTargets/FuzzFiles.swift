internal import Foundation
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintServe
internal import ImprintStore

/// A folder for the files of this process, because most readers read files.
struct FuzzFiles: Sendable {
    /// The folder of this process, which is removed when it exits.
    static let shared = Result { try FuzzFiles() }

    let folder: URL
    /// The reader of requests to a small model.
    let requests: RequestReader
    /// The key of signatures: the number 1 on the curve P-256.
    let key: SigningKey
    /// A store without model files.
    let store: ModelStore
    /// A small JPEG without metadata.
    private let photo: [UInt8]

    private init() throws {
        // A folder in memory, if there is one.
        let memory = URL(filePath: "/dev/shm")
        let parent =
            FileManager.default.isWritableFile(atPath: memory.path) ? memory : FileManager.default.temporaryDirectory
        folder = parent.appending(path: "imprint-fuzz-\(ProcessInfo.processInfo.processIdentifier)")
        var image = RasterImage(width: 16, height: 12)
        for index in image.samples.indices { image.samples[index] = UInt8(truncatingIfNeeded: 5 * index) }
        photo = try ImageFile.encodeJPEG(image)
        requests = try RequestReader(Self.model(), name: "fuzz")
        key = try SigningKey(
            pem: """
                -----BEGIN EC PRIVATE KEY-----
                MHcCAQEEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABoAoGCCqGSM49
                AwEHoUQDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/
                m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
                -----END EC PRIVATE KEY-----
                """)
        store = try ModelStore(at: folder.appending(path: "store"))
        try create(Data("abc".utf8), "signed/a.bin")
        try create(Data(), "signed/b/c.bin")
        let manifest = #"{"itemInfoEntries":{"m":{"path":"model.mlmodel"}},"rootModelIdentifier":"m"}"#
        try create(Data(manifest.utf8), "model.mlpackage/Manifest.json")
        try create(Data(), "model.mlpackage/Data/weights/weight.bin")
        let png = Data(try ImageFile.encodePNG(RasterImage(width: 200, height: 100)))
        for (index, file) in annotationFiles.enumerated() {
            for (path, text) in file.others { try create(Data(text.utf8), "annotations\(index)/\(path)") }
            try create(Data(), "annotations\(index)/\(file.path)")
            for path in ["a.png", "sub/b.png"] { try create(png, "annotations\(index)/images/\(path)") }
        }
        // For lists of labels.
        for path in ["a.png", "b.png"] { try create(png, path) }
        atexit { if let files = try? FuzzFiles.shared.get() { try? FileManager.default.removeItem(at: files.folder) } }
    }

    /// The model of signatures, whose files Fuzzing/make_corpora.py also lists.
    var signedFolder: URL { folder.appending(path: "signed") }

    /// A classifier whose network has few weights.
    private static func model() throws -> ModelFile {
        var builder = NetworkBuilder(name: "fuzz", input: TensorShape(height: 4, width: 4, channels: 3))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2))
        builder.add(Softmax())
        let network = try builder.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 4, height: 4))
    }

    /// Writes a file of the folder, and the folders around it.
    private func create(_ bytes: Data, _ path: String) throws {
        let url = folder.appending(path: path)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try bytes.write(to: url)
    }

    /// Writes a file of the folder, and returns its URL.
    func write(_ bytes: some Sequence<UInt8>, _ path: String = "file") throws -> URL {
        let url = folder.appending(path: path)
        try Data(bytes).write(to: url)
        return url
    }

    /// Writes the file that the first byte selects into its data set, and returns the folder of the data set.
    func writeAnnotations(_ bytes: Data) throws -> URL {
        let index = Int(bytes.first ?? 0) % annotationFiles.count
        _ = try write(bytes.dropFirst(), "annotations\(index)/\(annotationFiles[index].path)")
        return folder.appending(path: "annotations\(index)")
    }
}

/// The files of data sets that are fuzzed, with the other files of the data set.
private let annotationFiles: [(path: String, others: [String: String])] = [
    // COCO or Create ML.
    ("set.json", [:]),
    ("data.yaml", ["labels/a.txt": "1 0.2 0.2 0.2 0.2\n", "labels/sub/b.txt": ""]),
    ("labels/a.txt", ["data.yaml": "train: images\nnc: 2\nnames: [dog, cat]\n", "labels/sub/b.txt": ""]),
    (
        "Annotations/a.xml",
        ["Annotations/sub/b.xml": "<annotation><filename>sub/b.png</filename></annotation>"]
    ),
]

// MARK: JPEG segments

extension FuzzFiles {
    /// Returns a JPEG with a segment for each content, each of at most 65,533 bytes.
    func jpeg(marker: UInt8, _ contents: [[UInt8]]) -> [UInt8] {
        var bytes = Array(photo.prefix(2))
        for content in contents {
            let length = content.count + 2
            bytes += [0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)]
            bytes += content
        }
        return bytes + photo.dropFirst(2)
    }

    /// Returns a JPEG with an embedded colour profile, which takes several segments if it is large (ICC.1, annex B.4).
    func jpeg(profile: Data) -> [UInt8] {
        let size = 65_000
        let count = min(max((profile.count + size - 1) / size, 1), 255)
        return jpeg(
            marker: 0xE2,
            (0..<count).map { index in
                Array("ICC_PROFILE\0".utf8) + [UInt8(index + 1), UInt8(count)]
                    + profile.dropFirst(index * size).prefix(size)
            })
    }
}
