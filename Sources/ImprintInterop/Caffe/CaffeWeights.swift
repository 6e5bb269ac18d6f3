/// The weights of a `.caffemodel` by layer (caffe.proto, https://github.com/BVLC/caffe).
///
/// They are decoded on demand.
struct CaffeWeights {
    private(set) var blobs: [String: [Blob]] = [:]
    /// The path of the file.
    let path: String
    /// The size of the file, which has at least 32 bits per weight.
    let byteCount: Int

    /// Parses a file.
    ///
    /// - Throws: `WireError` if it is not a valid NetParameter message, `ImportError.Problem` if it is another kind of Caffe
    ///   file.
    init(_ file: MappedFile) throws {
        path = file.path
        byteCount = file.count
        try WireMessage(file).forEachField { field in
            // Field 100 has layers in the new format, field 2 in the old format.
            guard field.number == 100 || field.number == 2 else { return }
            let (nameField, blobsField) = field.number == 100 ? (1, 7) : (4, 6)
            var name = ""
            var layerBlobs: [Blob] = []
            try field.message().forEachField { part in
                switch part.number {
                case nameField: name = try part.string()
                case blobsField: try layerBlobs.append(Blob(part.message()), upTo: 64, "blobs of a layer")
                case 1 where field.number == 2:
                    throw ImportError.Problem.unsuitableModel(
                        found: "a Caffe model in the first format",
                        advice: "Convert it with upgrade_net_proto_binary")
                default: break
                }
            }
            if !layerBlobs.isEmpty { blobs[name] = layerBlobs }
            if blobs.count > ONNXModel.maximumCount {
                throw WireError.tooMany(item: "layers", limit: ONNXModel.maximumCount)
            }
        }
        guard !blobs.isEmpty else {
            throw ImportError.Problem.malformed(reason: "it has no layers with weights, expected a .caffemodel")
        }
    }

    /// A weight tensor.
    struct Blob {
        private var legacy = [0, 0, 0, 0]
        private var dimensions: [Int]?
        /// The packed values, and the values that have a separate field each in `single`.
        private var parts: [WireMessage.Field] = []
        private var single: [Float] = []
        private var isDouble = false

        init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1...4: legacy[field.number - 1] = try field.integer()
                case 5, 8:
                    isDouble = field.number == 8
                    if field.isPacked {
                        try parts.append(field, upTo: 64, "parts of a blob")
                    } else if isDouble {
                        try field.append(doublesTo: &single)
                    } else {
                        try field.append(to: &single)
                    }
                case 7:
                    var lengths: [Int] = []
                    try field.message().forEachField {
                        if $0.number == 1 { try $0.append(to: &lengths, limit: 32, of: "axes") }
                    }
                    dimensions = lengths
                default: break
                }
            }
        }

        /// Returns the decoded tensor, with a shape of at most four axes in old files.
        func constant() throws -> Constant {
            var values = single
            for part in parts {
                if isDouble { try part.append(doublesTo: &values) } else { try part.append(to: &values) }
            }
            let shape = dimensions ?? legacy
            guard checkedProduct(shape) == values.count else {
                throw ImportError.Problem.malformed(reason: "a blob has \(values.count) values for the shape \(shape)")
            }
            return Constant(shape: shape, floats: values)
        }
    }
}
