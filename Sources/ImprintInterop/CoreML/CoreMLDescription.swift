extension CoreMLModel {
    /// The inputs, outputs and metadata of a model.
    struct Description {
        private(set) var inputs: [Feature] = []
        private(set) var outputs: [Feature] = []
        /// The output with the probabilities of a classifier; empty if the file does not specify it.
        private(set) var probabilities = ""
        /// The user-defined metadata.
        private(set) var userDefined: [String: String] = [:]
        private var version: String?
        private var license: String?

        init() {}

        init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: try inputs.append(Feature(field.message()), upTo: 4096, "inputs")
                case 10: try outputs.append(Feature(field.message()), upTo: 4096, "outputs")
                case 12: probabilities = try field.string()
                case 100: try readMetadata(field.message())
                default: break
                }
            }
        }

        private mutating func readMetadata(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 2: version = try? field.string()
                case 4: license = try? field.string()
                case 100:
                    userDefined.merge(try [field.message().stringPair()]) { $1 }
                    if userDefined.count > 4096 {
                        throw WireError.tooMany(item: "entries in its metadata", limit: 4096)
                    }
                default: break
                }
            }
        }

        /// The version, licence and intended use that the file states.
        var details: ImportedDetails { ImportedDetails(version: version, license: license, metadata: userDefined) }
    }

    /// An input or output.
    struct Feature {
        private(set) var name = ""
        private(set) var type = Kind.other

        /// The type of a feature.
        enum Kind {
            case image(width: Int, height: Int, colors: Colors)
            case array([Int])
            case other
        }

        /// The color space of an image, by its code in the file.
        enum Colors: Int {
            case grayscale = 10
            case rgb = 20
            case bgr = 30
            /// Samples as 16-bit floating-point values, also in the range 0…255.
            case grayscaleFloat16 = 40
        }

        fileprivate init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: name = try field.string()
                case 3: try readType(field.message())
                default: break
                }
            }
        }

        private mutating func readType(_ message: WireMessage) throws {
            let record = try CoreMLRecord(message)
            if let image = try record.record(4) {
                let found = try image.integer(3)
                guard let colors = Colors(rawValue: found) else {
                    throw ImportError.Problem.malformed(
                        reason: "the image \(name.debugDescription) has the color space \(found), expected 10 to 40")
                }
                type = .image(width: try image.integer(1), height: try image.integer(2), colors: colors)
            } else if let array = try record.record(5) {
                type = .array(try array.integers(1))
            }
        }
    }
}
