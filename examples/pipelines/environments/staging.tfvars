kafka_bootstrap_servers = "kafka.staging.example.com:9092"
userid                  = "User_6"
