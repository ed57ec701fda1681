package places

import (
	"testing"

	"github.com/tidefill/tidefill/store"
)

func TestSettingsOfBuckets(t *testing.T) {
	for _, c := range []struct {
		at                       store.Storage
		of                       secret
		endpoint, region, bucket string
		pathStyle                bool
		checksum                 string
	}{
		{store.Storage{Backend: "s3"}, secret{bucket: "theirs", region: "eu-west-1"},
			"", "eu-west-1", "theirs", false, "crc32c"},
		{store.Storage{Backend: "s3", Bucket: "ours", Region: "us-west-2"},
			secret{bucket: "theirs", region: "eu-west-1"},
			"", "us-west-2", "ours", false, "crc32c"},
		{store.Storage{Backend: "s3", Bucket: "b", EndpointURL: "https://ceph"}, secret{},
			"https://ceph", "us-east-1", "b", true, "crc32c"},
		{store.Storage{Backend: "minio", Bucket: "b", EndpointURL: "https://m:9000"}, secret{},
			"https://m:9000", "us-east-1", "b", true, "crc32c"},
		{store.Storage{Backend: "gcs", Bucket: "b"}, secret{},
			"https://storage.googleapis.com", "auto", "b", true, "md5"},
		{store.Storage{Backend: "tos", Bucket: "b"}, secret{endpoint: "tos-cn-beijing.volces.com"},
			"https://tos-s3-cn-beijing.volces.com", "cn-beijing", "b", false, "md5"},
		{store.Storage{Backend: "tos", Bucket: "b"},
			secret{endpoint: "https://tos-s3-cn-beijing.ivolces.com"},
			"https://tos-s3-cn-beijing.ivolces.com", "cn-beijing", "b", false, "md5"},
		{store.Storage{Backend: "tos", Bucket: "b", Region: "cn-shanghai"}, secret{},
			"https://tos-s3-cn-shanghai.volces.com", "cn-shanghai", "b", false, "md5"},
		{store.Storage{Backend: "tos", Bucket: "b", EndpointURL: "http://127.0.0.1:9"},
			secret{endpoint: "tos-cn-beijing.volces.com", region: "r"},
			"http://127.0.0.1:9", "r", "b", true, "md5"},
	} {
		got, err := bucketConfig(c.at, c.of)
		if err != nil {
			t.Errorf("%+v: %v", c.at, err)
		}
		if got.Endpoint != c.endpoint || got.Region != c.region || got.Bucket != c.bucket ||
			got.PathStyle != c.pathStyle || got.Checksum != c.checksum {
			t.Errorf("%+v with %+v: got %+v", c.at, c.of, got)
		}
	}
}
