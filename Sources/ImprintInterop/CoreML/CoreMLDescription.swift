extension CoreMLModel {
    /// What a model takes and gives.
    struct Description {
        private(set) var inputs: [Feature] = []
        private(set) var outputs: [Feature] = []
        /// The output that holds the probabilities of a classifier; empty if there is none.
        private(set) var probabilities = ""
        /// What whoever wrote the file added.
        private(set) var userDefined: [String: String] = [:]

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
                guard field.number == 100 else { return }
                userDefined.merge(try [field.message().stringPair()]) { $1 }
                if userDefined.count > 4096 { throw WireProblem.tooMany(what: "entries in its metadata", limit: 4096) }
            }
        }
    }

    /// An input or output.
    struct Feature {
        private(set) var name = ""
        private(set) var type = Kind.other

        /// What it holds.
        enum Kind {
            case image(width: Int, height: Int, colors: Colors)
            case array([Int])
            case other
        }

        /// The order of an image's channels, by the number in the file.
        enum Colors: Int {
            case grayscale = 10
            case redFirst = 20
            case blueFirst = 30
            /// In numbers of 16 bits, as the system hands them over; 0…255 as the others.
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
                        reason: "the image \(name.debugDescription) has the colour space \(found), expected 10 to 40")
                }
                type = .image(width: try image.integer(1), height: try image.integer(2), colors: colors)
            } else if let array = try record.record(5) {
                type = .array(try array.integers(1))
            }
        }
    }
}
