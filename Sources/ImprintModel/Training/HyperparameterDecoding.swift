internal import Foundation

// Model files outlive versions of Imprint: a file from before a hyperparameter existed lacks its key. The hyperparameter then has its
// default value, so a new hyperparameter does not need code here.
extension TrainingRecord.Hyperparameters {
    private enum CodingKeys: String, CodingKey {
        case classifier, detector
    }

    /// Decodes the hyperparameters of a trainer; missing ones get their default values.
    public init(from decoder: any Decoder) throws {
        let trainers = try decoder.container(keyedBy: CodingKeys.self)
        func decode<Values: HyperparameterStruct>(_ key: CodingKeys) throws -> Values {
            do {
                var stored = try trainers.decode(JSONValue.self, forKey: key)
                // Older files have the hyperparameters in another object, under the key that the compiler generates for an associated value.
                if case .object(let values) = stored, let inner = values["_0"] { stored = inner }
                return try Values(fillingIn: stored)
            } catch let error as DecodingError {
                throw DecodingError.dataCorruptedError(
                    forKey: key, in: trainers, debugDescription: explanation(error))
            }
        }
        if trainers.contains(.classifier) {
            self = .classifier(try decode(.classifier))
        } else {
            self = .detector(try decode(.detector))
        }
    }

    /// Encodes the hyperparameters with the name of their trainer.
    public func encode(to encoder: any Encoder) throws {
        var trainers = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .classifier(let values): try trainers.encode(values, forKey: .classifier)
        case .detector(let values): try trainers.encode(values, forKey: .detector)
        }
    }
}

/// A struct of hyperparameters: its properties have default values.
private protocol HyperparameterStruct: Codable {
    init()
}

extension ClassifierHyperparameters: HyperparameterStruct {}
extension DetectorHyperparameters: HyperparameterStruct {}

extension HyperparameterStruct {
    /// Decodes stored values; properties without one keep their default.
    ///
    /// An optional property without a stored value is nil, because nil is not stored.
    init(fillingIn stored: JSONValue) throws {
        guard case .object(let values) = stored else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: [], debugDescription: "the hyperparameters are not an object"))
        }
        let defaults = Self()
        let optionals = Set(
            Mirror(reflecting: defaults).children.filter { Mirror(reflecting: $0.value).displayStyle == .optional }
                .compactMap(\.label))
        guard case .object(let all) = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(defaults))
        else { preconditionFailure("hyperparameters are encoded as an object") }
        let merged = all.filter { !optionals.contains($0.key) }.merging(values) { $1 }
        // Values that are not finite are strings in a model file, and here too.
        self = try metadataDecoder().decode(Self.self, from: Data(json(JSONValue.object(merged)).utf8))
    }
}
